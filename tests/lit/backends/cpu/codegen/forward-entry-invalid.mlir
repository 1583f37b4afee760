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
