// RUN: mica-opt %s | mica-opt | FileCheck %s

// Every format of blocks, as it is read and printed; rows of activations.

// CHECK: mica.weight @q4_0 : tensor<4x256x!mica.block<q4_0>>
mica.weight @q4_0 : tensor<4x256x!mica.block<q4_0>>
// CHECK: mica.weight @q4_1 : tensor<4x256x!mica.block<q4_1>>
mica.weight @q4_1 : tensor<4x256x!mica.block<q4_1>>
// CHECK: mica.weight @q5_0 : tensor<4x256x!mica.block<q5_0>>
mica.weight @q5_0 : tensor<4x256x!mica.block<q5_0>>
// CHECK: mica.weight @q5_1 : tensor<4x256x!mica.block<q5_1>>
mica.weight @q5_1 : tensor<4x256x!mica.block<q5_1>>
// CHECK: mica.weight @q8_0 : tensor<4x256x!mica.block<q8_0>>
mica.weight @q8_0 : tensor<4x256x!mica.block<q8_0>>
// CHECK: mica.weight @q2_k : tensor<4x256x!mica.block<q2_k>>
mica.weight @q2_k : tensor<4x256x!mica.block<q2_k>>
// CHECK: mica.weight @q3_k : tensor<4x256x!mica.block<q3_k>>
mica.weight @q3_k : tensor<4x256x!mica.block<q3_k>>
// CHECK: mica.weight @q4_k : tensor<4x256x!mica.block<q4_k>>
mica.weight @q4_k : tensor<4x256x!mica.block<q4_k>>
// CHECK: mica.weight @q5_k : tensor<4x256x!mica.block<q5_k>>
mica.weight @q5_k : tensor<4x256x!mica.block<q5_k>>
// CHECK: mica.weight @q6_k : tensor<4x256x!mica.block<q6_k>>
mica.weight @q6_k : tensor<4x256x!mica.block<q6_k>>
// CHECK: mica.weight @iq4_nl : tensor<4x256x!mica.block<iq4_nl>>
mica.weight @iq4_nl : tensor<4x256x!mica.block<iq4_nl>>
// CHECK: mica.weight @iq4_xs : tensor<4x256x!mica.block<iq4_xs>>
mica.weight @iq4_xs : tensor<4x256x!mica.block<iq4_xs>>
// CHECK: mica.weight @mxfp4 : tensor<4x256x!mica.block<mxfp4>>
mica.weight @mxfp4 : tensor<4x256x!mica.block<mxfp4>>
// CHECK: mica.weight @int8_g32 : tensor<4x256x!mica.block<int8_g32>>
mica.weight @int8_g32 : tensor<4x256x!mica.block<int8_g32>>
// CHECK: mica.weight @int6_g32 : tensor<4x256x!mica.block<int6_g32>>
mica.weight @int6_g32 : tensor<4x256x!mica.block<int6_g32>>
// CHECK: mica.weight @int4_g32 : tensor<4x256x!mica.block<int4_g32>>
mica.weight @int4_g32 : tensor<4x256x!mica.block<int4_g32>>

// A stack of experts whose sources are stored so.
// CHECK: mica.weight @stack from ["a", "b"] stack {stored = !mica.block<q4_k>} : tensor<2x4x256x!mica.block<q4_k>>
mica.weight @stack from ["a", "b"] stack {stored = !mica.block<q4_k>} : tensor<2x4x256x!mica.block<q4_k>>

// A name may be quoted.
// CHECK: func @rows(%{{.*}}: tensor<?x256x!mica.int_rows<limbs = 1, group = 32>>, %{{.*}}: tensor<?x256x!mica.int_rows<limbs = 2, group = 32>>, %{{.*}}: tensor<4x256x!mica.block<q4_k>>)
func.func @rows(%x: tensor<?x256x!mica.int_rows<limbs = 1, group = 32>>, %z: tensor<?x256x!mica.int_rows<limbs = 2, group = 32>>,
    %w: tensor<4x256x!mica.block<"q4_k">>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  // CHECK: mica.linear {{.*}} : tensor<?x256x!mica.int_rows<limbs = 1, group = 32>>, tensor<4x256x!mica.block<q4_k>> -> tensor<?x4xf32>
  %y = mica.linear %x, %w : tensor<?x256x!mica.int_rows<limbs = 1, group = 32>>, tensor<4x256x!mica.block<q4_k>> -> tensor<?x4xf32>
  %v = mica.linear %z, %w : tensor<?x256x!mica.int_rows<limbs = 2, group = 32>>, tensor<4x256x!mica.block<q4_k>> -> tensor<?x4xf32>
  return %y, %v : tensor<?x4xf32>, tensor<?x4xf32>
}

// Rows of floats multiply blocks as well.
// CHECK-LABEL: func @floats
func.func @floats(%x: tensor<?x256xbf16>, %z: tensor<?x256xf32>, %w: tensor<4x256x!mica.block<q6_k>>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  // CHECK: mica.linear {{.*}} : tensor<?x256xbf16>, tensor<4x256x!mica.block<q6_k>> -> tensor<?x4xf32>
  %y = mica.linear %x, %w : tensor<?x256xbf16>, tensor<4x256x!mica.block<q6_k>> -> tensor<?x4xf32>
  // CHECK: mica.linear {{.*}} : tensor<?x256xf32>, tensor<4x256x!mica.block<q6_k>> -> tensor<?x4xf32>
  %v = mica.linear %z, %w : tensor<?x256xf32>, tensor<4x256x!mica.block<q6_k>> -> tensor<?x4xf32>
  return %y, %v : tensor<?x4xf32>, tensor<?x4xf32>
}
