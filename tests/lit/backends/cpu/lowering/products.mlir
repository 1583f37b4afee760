// RUN: mica-opt %s --cpu-set-target=cpu=znver4 --cpu-lower-to-exec | FileCheck %s --check-prefixes=CHECK,DOT
// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s --check-prefixes=CHECK,PLAIN --implicit-check-not=x86vector.avx512.dot

#f32 = #mica.packed<columns = 64, depth = 1, k_block = 16>
#bf16 = #mica.packed<columns = 64, depth = 2, k_block = 32>

// CHECK-LABEL: func.func private @generated
// CHECK-SAME: tensor<3x48x64x1xf32>
// CHECK: exec.launch @linear_172x40 tasks(%c3) ins(%arg0, %arg1
func.func private @generated(%x: tensor<?x40xf32>, %w: tensor<172x40xf32, #f32>) -> tensor<?x172xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x40xf32>, tensor<172x40xf32, #f32> -> tensor<?x172xf32>
  return %y : tensor<?x172xf32>
}

// The sum is added to the residual in place.
// CHECK-LABEL: func.func private @residual
// CHECK: exec.launch @linear_residual_40x40 tasks(%c1) ins(%arg0, %arg1, %arg2 : {{.*}}) outs(%arg0
func.func private @residual(%x: tensor<?x40xf32>, %w: tensor<40x40xf32, #f32>, %b: tensor<40xf32>) -> tensor<?x40xf32> {
  %y = mica.linear %x, %w bias(%b : tensor<40xf32>) residual(%x : tensor<?x40xf32>) kernel(generated)
      : tensor<?x40xf32>, tensor<40x40xf32, #f32> -> tensor<?x40xf32>
  return %y : tensor<?x40xf32>
}

// oneDNN adds to a residual itself, but a bias needs an epilogue, for each panel of columns.
// CHECK-LABEL: func.func private @onednn
// CHECK: exec.matmul k(40) n(172) ins(%arg0, %arg1
// CHECK-NOT: exec.launch
// CHECK: exec.matmul accumulate k(40) n(172) ins(%arg0, %arg1 {{.*}} outs(
// CHECK-NOT: exec.launch
// CHECK: tensor.extract_slice %arg1[%{{.*}}, 0, 0, 0] [3, 32, 64, 2]
// CHECK: %[[SUMS:.*]] = exec.matmul k(40) n(192)
// CHECK: exec.launch @epilogue_172x40 {{.*}} ins(%[[SUMS]], %{{.*}}, %arg2 : tensor<?x192xf32>, index, tensor<172xf32>) outs(
func.func private @onednn(%x: tensor<?x40xbf16>, %w: tensor<172x40xbf16, #bf16>, %b: tensor<172xf32>) -> tensor<?x172xf32> {
  %y = mica.linear %x, %w kernel(onednn) : tensor<?x40xbf16>, tensor<172x40xbf16, #bf16> -> tensor<?x172xf32>
  %z = mica.linear %x, %w residual(%y : tensor<?x172xf32>) kernel(onednn)
      : tensor<?x40xbf16>, tensor<172x40xbf16, #bf16> -> tensor<?x172xf32>
  %u = mica.linear %x, %w bias(%b : tensor<172xf32>) residual(%z : tensor<?x172xf32>) kernel(onednn)
      : tensor<?x40xbf16>, tensor<172x40xbf16, #bf16> -> tensor<?x172xf32>
  return %u : tensor<?x172xf32>
}

// CHECK-LABEL: func.func private @gated
// CHECK: exec.launch @gated_linear_72x40 tasks(%c2)
func.func private @gated(%x: tensor<?x40xbf16>, %w: tensor<256x40xbf16, #bf16>) -> tensor<?x72xbf16> {
  %y = mica.gated_linear %x, %w silu kernel(generated) : tensor<?x40xbf16>, tensor<256x40xbf16, #bf16> -> tensor<?x72xbf16>
  return %y : tensor<?x72xbf16>
}

// The gate is applied to a panel of sums while they are in the cache.
// CHECK-LABEL: func.func private @gated_by_onednn
// CHECK: scf.for
// CHECK: tensor.extract_slice %arg1[%{{.*}}, 0, 0, 0] [16, 32, 64, 2]
// CHECK: exec.matmul k(40) n(1024)
// CHECK: exec.launch @gated_epilogue_1100x40
// CHECK: }
// CHECK: exec.matmul k(40) n(256)
// CHECK: exec.launch @gated_epilogue_1100x40
func.func private @gated_by_onednn(%x: tensor<?x40xbf16>, %w: tensor<2304x40xbf16, #bf16>) -> tensor<?x1100xbf16> {
  %y = mica.gated_linear %x, %w silu kernel(onednn) : tensor<?x40xbf16>, tensor<2304x40xbf16, #bf16> -> tensor<?x1100xbf16>
  return %y : tensor<?x1100xbf16>
}

// CHECK-LABEL: func.func private @embedding(
// CHECK: exec.launch @embedding{{.*}} ins(%arg0, %arg1 : tensor<?xi32>, tensor<2x48x64x1xf32>)
// CHECK: exec.launch @embedding{{.*}} ins(%arg0, %arg2 : tensor<?xi32>, tensor<96x40xf32>)
func.func private @embedding(%tokens: tensor<?xi32>, %packed: tensor<96x40xf32, #f32>, %plain: tensor<96x40xf32>)
    -> (tensor<?x40xf32>, tensor<?x40xf32>) {
  %x = mica.embedding %tokens, %packed : tensor<?xi32>, tensor<96x40xf32, #f32> -> tensor<?x40xf32>
  %y = mica.embedding %tokens, %plain : tensor<?xi32>, tensor<96x40xf32> -> tensor<?x40xf32>
  return %x, %y : tensor<?x40xf32>, tensor<?x40xf32>
}

// f32 uses fused multiply-adds; pairs of bf16 use dot products if the target has them, otherwise two multiply-adds of
// the upper halves.
// CHECK-LABEL: func.func private @linear_172x40(
// CHECK-SAME: exec.cost = #exec.cost<weight_bytes = 36864, row_flops = 13760>
// CHECK: vector.fma
// CHECK-LABEL: func.func private @gated_linear_72x40(
// CHECK-SAME: exec.cost = #exec.cost<weight_bytes = 32768, row_flops = 11520>
// DOT: x86vector.avx512.dot
// PLAIN: arith.shli
// PLAIN: vector.fma

// Only the rows of the tokens are read from an embedding.
// CHECK-LABEL: func.func private @embedding_1(
// CHECK-SAME: exec.cost = #exec.cost<row_weight_bytes = 256>
// CHECK-LABEL: func.func private @embedding_2(
// CHECK-SAME: exec.cost = #exec.cost<row_weight_bytes = 160>
