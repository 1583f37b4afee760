// RUN: mica-opt --cpu-forward-entry --split-input-file --verify-diagnostics %s

// expected-error @+1 {{has no public function to enter (stage loops)}}
module {
  func.func private @layer(%x: memref<?xi32>) { return }
}

// -----

// expected-error @+1 {{one entry function, and only one, must have no mica.max_rows}}
func.func @few(%tokens: memref<?xi32>) attributes {mica.max_rows = 16 : i64} { return }

// -----

func.func @few(%tokens: memref<?xi32>) attributes {mica.max_rows = 16 : i64} { return }
// expected-error @+1 {{entry functions @few and @many have different types}}
func.func @many(%tokens: memref<?xi32>, %other: memref<?xi32>) { return }

// -----

// expected-error @+1 {{entry function @main returns values, but results are buffers at stage loops}}
func.func @main(%tokens: memref<?xi32>) -> index { %c = arith.constant 1 : index
  return %c : index }

// -----

// expected-error @+1 {{entry function @main takes something that is no memref}}
func.func @main(%tokens: memref<?xi32>, %n: index) { return }

// -----

// expected-error @+1 {{entry functions begin with the tokens, a memref of rank 1}}
func.func @main(%tokens: memref<?x?xi32>) { return }

// -----

// expected-error @+1 {{no entry function has mica.role = "decode"}}
func.func @many(%tokens: memref<?xi32>) attributes {mica.role = "prompt"} { return }

// -----

// expected-error @+1 {{entry function @many has mica.role = "draft", write "prompt" or "decode"}}
func.func @many(%tokens: memref<?xi32>) attributes {mica.role = "draft"} { return }

// -----

func.func @few(%tokens: memref<?xi32>) attributes {mica.max_rows = 16 : i64, mica.role = "prompt"} { return }
// expected-error @+1 {{entry functions @few and @many: either both or none must have mica.role}}
func.func @many(%tokens: memref<?xi32>) { return }

// -----

func.func @decode_many(%tokens: memref<?xi32>) attributes {mica.role = "decode"} { return }
// expected-error @+1 {{one entry function, and only one, must have no mica.max_rows among those with mica.role = "prompt"}}
func.func @prompt_several(%tokens: memref<?xi32>) attributes {mica.max_rows = 32 : i64, mica.role = "prompt"} { return }
