// RUN: mica-opt %s --cpu-verify-loops --split-input-file --verify-diagnostics

// The ops allowed at stage `loops`; a function without callers needs no memory.
func.func private @never_called(%n: index) {
  %x = memref.alloc(%n) : memref<?x16xf32>
  return
}
mica.weight @w at 0 bytes 128 : tensor<32xf32>
func.func private @kernel(%begin: index, %end: index, %x: memref<?x16xf32>, %cache: memref<2x?x2x?x1024xf32>) {
  %none = arith.constant 0 : index
  %v = vector.load %x[%begin, %none] : memref<?x16xf32>, vector<16xf32>
  %e = math.exp %v : vector<16xf32>
  vector.store %e, %x[%begin, %none] : memref<?x16xf32>, vector<16xf32>
  return
}
func.func @main(%x: memref<?x16xf32>, %cache: memref<2x?x2x?x1024xf32> {mica.role = "cache"}) {
  %one = arith.constant 1 : index
  exec.launch @kernel tasks(%one) ins(%x : memref<?x16xf32>) outs(%cache : memref<2x?x2x?x1024xf32>)
  return
}

// -----

func.func @tensor_op(%n: index) {
  // expected-error @+1 {{'tensor.empty' op is not allowed at stage `loops`}}
  %x = tensor.empty(%n) : tensor<?x16xf32>
  return
}

// -----

func.func private @mica_op(%x: memref<?xf32>, %y: tensor<?x16xf32>) {
  // expected-error @+1 {{'mica.silu' op is not allowed at stage `loops`}}
  %z = mica.silu %y : tensor<?x16xf32>
  return
}

// -----

// expected-error @+1 {{has a tensor, but stage `loops` works on buffers}}
func.func @tensor_argument(%x: tensor<?x16xf32>) { return }

// -----

func.func @tensor_constant() {
  // expected-error @+1 {{'arith.constant' op has a tensor, but stage `loops` works on buffers}}
  %x = arith.constant dense<0.0> : tensor<4xf32>
  return
}

// -----

func.func @allocation(%n: index) {
  // expected-error @+1 {{'memref.alloc' op allocates memory while the model runs: run cpu-plan-buffers}}
  %x = memref.alloc(%n) : memref<?x16xf32>
  return
}

// -----

func.func @circle(%x: memref<?x16xf32>) {
  // expected-error @+1 {{'func.call' op calls @circle, which leads back to this call}}
  call @circle(%x) : (memref<?x16xf32>) -> ()
  return
}

// -----

// A second cache, a view of scratch memory.
func.func @planted(%n: index, %scratch: memref<?xi8>, %cache: memref<2x?x2x?x1024xf32> {mica.role = "cache"}) {
  %none = arith.constant 0 : index
  // expected-error @+1 {{a cache or state would be copied here}}
  %copy = memref.view %scratch[%none][%n, %n] : memref<?xi8> to memref<2x?x2x?x1024xf32>
  return
}
