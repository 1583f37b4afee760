// RUN: mica-opt --cpu-forward-entry --split-input-file --verify-diagnostics %s

// expected-error @+1 {{has no public function to enter (stage loops)}}
module {
  func.func private @layer(%x: memref<?xi32>) { return }
}

// -----

// expected-error @+1 {{exactly one entry function must have no mica.max_rows}}
func.func @few(%tokens: memref<?xi32> {mica.role = "tokens"}) attributes {mica.max_rows = 16 : i64} { return }

// -----

func.func @few(%tokens: memref<?xi32> {mica.role = "tokens"}) attributes {mica.max_rows = 16 : i64} { return }
// expected-error @+1 {{entry functions @few and @many have different types}}
func.func @many(%tokens: memref<?xi32> {mica.role = "tokens"}, %other: memref<?xi32>) { return }

// -----

// expected-error @+1 {{entry function @main returns values, but results are buffers at stage loops}}
func.func @main(%tokens: memref<?xi32> {mica.role = "tokens"}) -> index { %c = arith.constant 1 : index
  return %c : index }

// -----

// expected-error @+1 {{entry function @main takes something that is not a memref}}
func.func @main(%tokens: memref<?xi32> {mica.role = "tokens"}, %n: index) { return }

// -----

// expected-error @+1 {{entry function @main has no argument with mica.role = "tokens" or others that have a number of each row}}
func.func @main(%logit_indices: memref<?xi32> {mica.role = "logit_indices"}) { return }

// -----

func.func @few(%tokens: memref<?xi32> {mica.role = "tokens"}, %positions: memref<?xi32> {mica.role = "positions"})
    attributes {mica.max_rows = 16 : i64} { return }
// expected-error @+1 {{entry functions @few and @many have different mica.role}}
func.func @many(%positions: memref<?xi32> {mica.role = "positions"}, %tokens: memref<?xi32> {mica.role = "tokens"}) {
  return
}

// -----

// expected-error @+1 {{no entry function has mica.row_role = "decode"}}
func.func @many(%tokens: memref<?xi32> {mica.role = "tokens"}) attributes {mica.row_role = "prompt"} { return }

// -----

// expected-error @+1 {{entry function @many has mica.row_role = "later"; write "prompt", "decode" or "draft"}}
func.func @many(%tokens: memref<?xi32> {mica.role = "tokens"}) attributes {mica.row_role = "later"} { return }

// -----

// The multi-token prediction head alone.
// expected-error @+1 {{has no public function to enter (stage loops)}}
module {
  func.func @many(%tokens: memref<?xi32> {mica.role = "tokens"}) attributes {mica.row_role = "draft"} { return }
}

// -----

func.func @few(%tokens: memref<?xi32> {mica.role = "tokens"})
    attributes {mica.max_rows = 16 : i64, mica.row_role = "prompt"} { return }
// expected-error @+1 {{entry functions @few and @many: either both or none must have mica.row_role}}
func.func @many(%tokens: memref<?xi32> {mica.role = "tokens"}) { return }

// -----

func.func @decode_large(%tokens: memref<?xi32> {mica.role = "tokens"}) attributes {mica.row_role = "decode"} { return }
// expected-error @+1 {{exactly one entry function must have no mica.max_rows among those with mica.row_role = "prompt"}}
func.func @prompt_medium(%tokens: memref<?xi32> {mica.role = "tokens"})
    attributes {mica.max_rows = 32 : i64, mica.row_role = "prompt"} { return }
