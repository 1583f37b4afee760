// RUN: mica-opt %s --split-input-file --verify-diagnostics

// Products of bytes.

func.func @sums_of_f32(%x: memref<?x64xi8>, %w: memref<4096xi8>, %y: memref<?x64xf32>) {
  // expected-error @+1 {{'exec.matmul' op multiplies bytes: takes x [T, bytes], a weight [bytes] and an output [T, N] of i32}}
  exec.matmul k(64) n(64) ins(%x, %w : memref<?x64xi8>, memref<4096xi8>) outs(%y : memref<?x64xf32>)
  return
}

// -----

func.func @accumulates(%x: memref<?x64xi8>, %w: memref<4096xi8>, %y: memref<?x64xi32>) {
  // expected-error @+1 {{'exec.matmul' op does not accumulate integers}}
  exec.matmul accumulate k(64) n(64) ins(%x, %w : memref<?x64xi8>, memref<4096xi8>) outs(%y : memref<?x64xi32>)
  return
}

// -----

func.func @short_rows(%x: memref<?x32xi8>, %w: memref<4096xi8>, %y: memref<?x64xi32>) {
  // expected-error @+1 {{'exec.matmul' op multiplies by [64, 64], but x is 'memref<?x32xi8>', the weight 'memref<4096xi8>' and the output 'memref<?x64xi32>'}}
  exec.matmul k(64) n(64) ins(%x, %w : memref<?x32xi8>, memref<4096xi8>) outs(%y : memref<?x64xi32>)
  return
}
