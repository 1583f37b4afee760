// RUN: mica-opt %s --split-input-file --verify-diagnostics

func.func @no_kernel(%y: memref<?xf32>, %n: index) {
  // expected-error @+1 {{'exec.launch' op launches @scale, which is not a function}}
  exec.launch @scale tasks(%n) outs(%y : memref<?xf32>)
  return
}

// -----

func.func private @scale(%begin: index, %end: index, %y: memref<?xf32>) -> index
func.func @kernel_with_results(%y: memref<?xf32>, %n: index) {
  // expected-error @+1 {{'exec.launch' op launches @scale, which returns values}}
  exec.launch @scale tasks(%n) outs(%y : memref<?xf32>)
  return
}

// -----

func.func private @scale(%begin: index, %end: index, %x: memref<?xf32>, %y: memref<?xf32>)
func.func @operand_missing(%y: memref<?xf32>, %n: index) {
  // expected-error @+1 {{'exec.launch' op passes 1 operands to @scale, which takes begin, end and 2}}
  exec.launch @scale tasks(%n) outs(%y : memref<?xf32>)
  return
}

// -----

func.func @weight_of_rank_2(%x: memref<?x64xf32>, %w: memref<64x64xf32>, %y: memref<?x64xf32>) {
  // expected-error @+1 {{'exec.matmul' op takes x [T, K], a packed weight of rank 4 and an output [T, N]}}
  exec.matmul k(64) n(64) ins(%x, %w : memref<?x64xf32>, memref<64x64xf32>) outs(%y : memref<?x64xf32>)
  return
}

// -----

func.func @another_k(%x: memref<?x32xf32>, %w: memref<1x64x64x1xf32>, %y: memref<?x64xf32>) {
  // expected-error @+1 {{'exec.matmul' op multiplies by [64, 64], but x is 'memref<?x32xf32>' and the output 'memref<?x64xf32>'}}
  exec.matmul k(64) n(64) ins(%x, %w : memref<?x32xf32>, memref<1x64x64x1xf32>) outs(%y : memref<?x64xf32>)
  return
}

// -----

func.func @small_weight(%x: memref<?x64xf32>, %w: memref<1x64x64x1xf32>, %y: memref<?x172xf32>) {
  // expected-error @+1 {{'exec.matmul' op has a packed weight 'memref<1x64x64x1xf32>' smaller than [172, 64]}}
  exec.matmul k(64) n(172) ins(%x, %w : memref<?x64xf32>, memref<1x64x64x1xf32>) outs(%y : memref<?x172xf32>)
  return
}

// -----

func.func @mixed_types(%x: memref<?x64xf32>, %w: memref<1x32x64x2xbf16>, %y: memref<?x64xf32>) {
  // expected-error @+1 {{'exec.matmul' op needs x and the weight of one type and an output of f32}}
  exec.matmul k(64) n(64) ins(%x, %w : memref<?x64xf32>, memref<1x32x64x2xbf16>) outs(%y : memref<?x64xf32>)
  return
}

// -----

func.func @gathers_other_rows(%x: memref<?x4x8xf32>, %y: memref<?x2x16xf32>) {
  // expected-error @+1 {{'exec.all_gather' op takes some columns of rows and all of them, got 'memref<?x4x8xf32>' and 'memref<?x2x16xf32>'}}
  exec.all_gather ins(%x : memref<?x4x8xf32>) outs(%y : memref<?x2x16xf32>)
  return
}

// -----

func.func @slice_is_wider(%x: memref<?x32xf32>, %y: memref<?x64xf32>) {
  // expected-error @+1 {{'exec.all_slice' op takes some columns of rows and all of them, got 'memref<?x64xf32>' and 'memref<?x32xf32>'}}
  exec.all_slice ins(%x : memref<?x32xf32>) outs(%y : memref<?x64xf32>)
  return
}

// -----

func.func @indices_of_another_type(%x: memref<?xi64>, %y: memref<?xi32>) {
  // expected-error @+1 {{'exec.local_rows' op takes indices [T] in i32, got 'memref<?xi64>'}}
  exec.local_rows n(8) ins(%x : memref<?xi64>) outs(%y : memref<?xi32>)
  return
}

// -----

func.func @no_rows_of_a_rank(%x: memref<?xi32>, %y: memref<?xi32>) {
  // expected-error @+1 {{'exec.local_rows' op is for ranks with 0 rows, expected at least 1}}
  exec.local_rows n(0) ins(%x : memref<?xi32>) outs(%y : memref<?xi32>)
  return
}

// -----

func.func @shares_heads(%x: memref<?xi32>, %y: memref<?x2x8xf32>) {
  // expected-error @+1 {{'exec.share_rows' op shares rows [T, C], got 'memref<?x2x8xf32>'}}
  exec.share_rows n(8) ins(%x : memref<?xi32>) outs(%y : memref<?x2x8xf32>)
  return
}
