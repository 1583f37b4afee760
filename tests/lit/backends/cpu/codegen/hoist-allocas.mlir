// RUN: mica-opt --cpu-hoist-allocas --split-input-file --verify-diagnostics %s | FileCheck %s

// CHECK-LABEL: func.func @in_a_loop
// CHECK-NEXT: memref.alloca() : memref<64xf32>
// CHECK: scf.for
func.func @in_a_loop(%n: index, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %buffer = memref.alloca() : memref<64xf32>
    %v = memref.load %buffer[%c0] : memref<64xf32>
    memref.store %v, %out[%i] : memref<?xf32>
  }
  return
}

// -----

func.func @no_dynamic_size(%n: index) {
  // expected-error @+1 {{allocates stack memory of a size that is not constant}}
  %buffer = memref.alloca(%n) : memref<?xf32>
  return
}

// -----

func.func @no_heap() {
  // expected-error @+1 {{allocates memory while the model runs: memory must be planned before this stage}}
  %buffer = memref.alloc() : memref<64xf32>
  return
}

// -----

memref.alloca_scope {
  // expected-error @+1 {{is not in a function}}
  %buffer = memref.alloca() : memref<64xf32>
}

// -----

// expected-error @+1 {{uses 2097216 bytes of stack; the limit is 2097152}}
func.func @no_large_stack() {
  %buffer = memref.alloca() : memref<524288xf32>
  return
}
