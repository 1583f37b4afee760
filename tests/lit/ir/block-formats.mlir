// RUN: mica-opt %s | mica-opt | FileCheck %s

// Weights in blocks without and with sub-scales, and in one of Mica's own formats, round-trip, and so do activation types.

// CHECK: mica.weight @q4_0 : tensor<4x256x!mica.block<q4_0>>
mica.weight @q4_0 : tensor<4x256x!mica.block<q4_0>>
// CHECK: mica.weight @q4_k : tensor<4x256x!mica.block<q4_k>>
mica.weight @q4_k : tensor<4x256x!mica.block<q4_k>>
// CHECK: mica.weight @int4_g32 : tensor<4x256x!mica.block<int4_g32>>
mica.weight @int4_g32 : tensor<4x256x!mica.block<int4_g32>>

// A stack of experts with block-quantized sources.
// CHECK: mica.weight @stack from ["a", "b"] stack {stored = !mica.block<q4_k>} : tensor<2x4x256x!mica.block<q4_k>>
mica.weight @stack from ["a", "b"] stack {stored = !mica.block<q4_k>} : tensor<2x4x256x!mica.block<q4_k>>

// A name may be quoted.
// CHECK: func @rows(%{{.*}}: tensor<?x256x!mica.int_rows<bits = 8, group = 32>>, %{{.*}}: tensor<?x256x!mica.int_rows<bits = 16, group = 32>>, %{{.*}}: tensor<4x256x!mica.block<q4_k>>)
func.func @rows(%x: tensor<?x256x!mica.int_rows<bits = 8, group = 32>>, %z: tensor<?x256x!mica.int_rows<bits = 16, group = 32>>,
    %w: tensor<4x256x!mica.block<"q4_k">>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  // CHECK: mica.linear {{.*}} : tensor<?x256x!mica.int_rows<bits = 8, group = 32>>, tensor<4x256x!mica.block<q4_k>> -> tensor<?x4xf32>
  %y = mica.linear %x, %w : tensor<?x256x!mica.int_rows<bits = 8, group = 32>>, tensor<4x256x!mica.block<q4_k>> -> tensor<?x4xf32>
  %v = mica.linear %z, %w : tensor<?x256x!mica.int_rows<bits = 16, group = 32>>, tensor<4x256x!mica.block<q4_k>> -> tensor<?x4xf32>
  return %y, %v : tensor<?x4xf32>, tensor<?x4xf32>
}

// Float activations can be multiplied by blocks as well.
// CHECK-LABEL: func @floats
func.func @floats(%x: tensor<?x256xbf16>, %z: tensor<?x256xf32>, %w: tensor<4x256x!mica.block<q6_k>>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  // CHECK: mica.linear {{.*}} : tensor<?x256xbf16>, tensor<4x256x!mica.block<q6_k>> -> tensor<?x4xf32>
  %y = mica.linear %x, %w : tensor<?x256xbf16>, tensor<4x256x!mica.block<q6_k>> -> tensor<?x4xf32>
  // CHECK: mica.linear {{.*}} : tensor<?x256xf32>, tensor<4x256x!mica.block<q6_k>> -> tensor<?x4xf32>
  %v = mica.linear %z, %w : tensor<?x256xf32>, tensor<4x256x!mica.block<q6_k>> -> tensor<?x4xf32>
  return %y, %v : tensor<?x4xf32>, tensor<?x4xf32>
}
