// RUN: mica-opt %s --mica-lower-to-exec=bf16-dot=true | FileCheck %s --check-prefixes=CHECK,DOT
// RUN: mica-opt %s --mica-lower-to-exec | FileCheck %s --check-prefixes=CHECK,PLAIN

#f32 = #mica.packed<columns = 64, depth = 1, k_block = 16>
#bf16 = #mica.packed<columns = 64, depth = 2, k_block = 32>

// CHECK-LABEL: func.func private @generated
// CHECK-SAME: tensor<3x48x64x1xf32>
// CHECK: exec.launch @linear_172x40 tasks(%c3) ins(%arg0, %arg1
func.func private @generated(%x: tensor<?x40xf32>, %w: tensor<172x40xf32, #f32>) -> tensor<?x172xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x40xf32>, tensor<172x40xf32, #f32> -> tensor<?x172xf32>
  return %y : tensor<?x172xf32>
}

// A residual is where the sum is added in place.
// CHECK-LABEL: func.func private @residual
// CHECK: exec.launch @linear_residual_40x40 tasks(%c1) ins(%arg0, %arg1, %arg2 : {{.*}}) outs(%arg0
func.func private @residual(%x: tensor<?x40xf32>, %w: tensor<40x40xf32, #f32>, %b: tensor<40xf32>) -> tensor<?x40xf32> {
  %y = mica.linear %x, %w bias(%b : tensor<40xf32>) residual(%x : tensor<?x40xf32>) kernel(generated)
      : tensor<?x40xf32>, tensor<40x40xf32, #f32> -> tensor<?x40xf32>
  return %y : tensor<?x40xf32>
}

// CHECK-LABEL: func.func private @onednn
// CHECK: exec.matmul k(40) n(172) ins(%arg0, %arg1
// CHECK: exec.matmul accumulate k(40) n(172) ins(%arg0, %arg1 {{.*}} outs(
// CHECK: exec.launch @add_bias
func.func private @onednn(%x: tensor<?x40xbf16>, %w: tensor<172x40xbf16, #bf16>, %b: tensor<172xf32>) -> tensor<?x172xf32> {
  %y = mica.linear %x, %w kernel(onednn) : tensor<?x40xbf16>, tensor<172x40xbf16, #bf16> -> tensor<?x172xf32>
  %z = mica.linear %x, %w bias(%b : tensor<172xf32>) residual(%y : tensor<?x172xf32>) kernel(onednn)
      : tensor<?x40xbf16>, tensor<172x40xbf16, #bf16> -> tensor<?x172xf32>
  return %z : tensor<?x172xf32>
}

// CHECK-LABEL: func.func private @gated
// CHECK: exec.launch @gated_linear_72x40 tasks(%c2)
func.func private @gated(%x: tensor<?x40xbf16>, %w: tensor<256x40xbf16, #bf16>) -> tensor<?x72xbf16> {
  %y = mica.gated_linear %x, %w silu kernel(generated) : tensor<?x40xbf16>, tensor<256x40xbf16, #bf16> -> tensor<?x72xbf16>
  return %y : tensor<?x72xbf16>
}

// CHECK-LABEL: func.func private @glu(
// CHECK: exec.launch @glu
func.func private @glu(%x: tensor<?x256xf32>) -> tensor<?x72xbf16> {
  %y = mica.glu %x silu : tensor<?x256xf32> -> tensor<?x72xbf16>
  return %y : tensor<?x72xbf16>
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

// Products of f32 are fused multiply-adds; pairs of bf16 are dot products where the target has them, and two
// multiply-adds of the upper halves elsewhere.
// CHECK-LABEL: func.func private @linear_172x40(
// CHECK: vector.fma
// CHECK-LABEL: func.func private @gated_linear_72x40(
// DOT: x86vector.avx512.dot
// PLAIN-NOT: x86vector.avx512.dot
// PLAIN: arith.shli
// PLAIN: vector.fma
