// RUN: mica-opt --cpu-lower-exec --split-input-file --verify-diagnostics %s

// expected-error @+1 {{kernel @k does not begin with (begin: index, end: index)}}
func.func private @k(%begin: i64, %end: index, %x: memref<?xf32>) { return }
func.func @main(%n: index, %x: memref<?xf32>) {
  exec.launch @k tasks(%n) outs(%x : memref<?xf32>)
  return
}

// -----

func.func private @k(%begin: index, %end: index, %x: memref<?xf32>)
func.func @main(%n: index, %x: memref<?xf32>) {
  // expected-error @+1 {{launches @k, which has no body}}
  exec.launch @k tasks(%n) outs(%x : memref<?xf32>)
  return
}

// -----

func.func private @k(%begin: index, %end: index, %x: memref<?xf32>) { return }
func.func @main(%n: index, %x: memref<?xi32>) {
  // expected-error @+1 {{passes 'memref<?xi32>' where @k takes 'memref<?xf32>'}}
  exec.launch @k tasks(%n) outs(%x : memref<?xi32>)
  return
}

// -----

// expected-error @+1 {{kernel @k takes 'memref<?xf32, affine_map<(d0) -> (d0 floordiv 2)>>', which no program can pass}}
func.func private @k(%begin: index, %end: index, %x: memref<?xf32, affine_map<(d0) -> (d0 floordiv 2)>>) { return }
func.func @main(%n: index, %x: memref<?xf32, affine_map<(d0) -> (d0 floordiv 2)>>) {
  exec.launch @k tasks(%n) outs(%x : memref<?xf32, affine_map<(d0) -> (d0 floordiv 2)>>)
  return
}

// -----

func.func private @k(%begin: index, %end: index, %x: tensor<?xf32>) { return }
func.func @main(%n: index, %x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{launches on tensors: it was not bufferized}}
  %y = exec.launch @k tasks(%n) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

func.func @main(%x: memref<?x64xf32, strided<[1, ?]>>, %w: memref<1x64x64x1xf32>, %y: memref<?x64xf32>) {
  // expected-error @+1 {{works on 'memref<?x64xf32, strided<[1, ?]>>', whose rows are not contiguous in memory}}
  exec.matmul k(64) n(64) ins(%x, %w : memref<?x64xf32, strided<[1, ?]>>, memref<1x64x64x1xf32>) outs(%y : memref<?x64xf32>)
  return
}

// -----

func.func @main(%x: memref<?x64xf32>, %w: memref<1x64x64x1xf32, strided<[8192, 64, 1, 1]>>, %y: memref<?x64xf32>) {
  // expected-error @+1 {{reads a weight that is not contiguous in memory: 'memref<1x64x64x1xf32, strided<[8192, 64, 1, 1]>>'}}
  exec.matmul k(64) n(64) ins(%x, %w : memref<?x64xf32>, memref<1x64x64x1xf32, strided<[8192, 64, 1, 1]>>) outs(%y : memref<?x64xf32>)
  return
}

// -----

func.func @main(%layer: index, %x: memref<?x4x8xf32, strided<[64, 16, 1]>>) {
  // expected-error @+1 {{records rows of 'memref<?x4x8xf32, strided<[64, 16, 1]>>', which are not contiguous in memory}}
  exec.probe "padded" layer(%layer) ins(%x : memref<?x4x8xf32, strided<[64, 16, 1]>>)
  return
}

// -----

func.func private @k(%begin: index, %end: index, %layer: index, %x: memref<?xf32>) {
  // expected-error @+1 {{calls the runtime from a kernel}}
  exec.probe "within" layer(%layer) ins(%x : memref<?xf32>)
  return
}
func.func @main(%n: index, %x: memref<?xf32>) {
  exec.launch @k tasks(%n) ins(%n : index) outs(%x : memref<?xf32>)
  return
}

// -----

func.func private @show(%layer: index, %x: memref<?xf32>) {
  exec.probe "called" layer(%layer) ins(%x : memref<?xf32>)
  return
}
func.func private @k(%begin: index, %end: index, %layer: index, %x: memref<?xf32>) {
  // expected-error @+1 {{calls @show, which calls the runtime, from a kernel}}
  func.call @show(%layer, %x) : (index, memref<?xf32>) -> ()
  return
}
func.func @main(%n: index, %x: memref<?xf32>) {
  exec.launch @k tasks(%n) ins(%n : index) outs(%x : memref<?xf32>)
  return
}

// -----

func.func @heads_with_gaps(%x: memref<?x4x32xf32, strided<[200, 32, 1]>>, %y: memref<?x4x64xf32>) {
  // expected-error @+1 {{works on 'memref<?x4x32xf32, strided<[200, 32, 1]>>', whose rows have no common stride}}
  exec.all_gather ins(%x : memref<?x4x32xf32, strided<[200, 32, 1]>>) outs(%y : memref<?x4x64xf32>)
  return
}
