// RUN: mica-opt %s --mica-assign-precision=weights=f32 --split-input-file | FileCheck %s --check-prefixes=CHECK,F32
// RUN: mica-opt %s --mica-assign-precision=weights=int4 --split-input-file | FileCheck %s --check-prefixes=CHECK,INT4

// Preserved weights keep their block formats; their activations are integers of 16 bits, whatever the type of the other
// matrices is, even if it is f32. Activations are quantized once for all of their matmuls.
// CHECK: mica.weight @a : tensor<16x32x!mica.block<q8_0>>
mica.weight @a : tensor<16x32x!mica.block<q8_0>>
mica.weight @b : tensor<16x32x!mica.block<q4_1>>
// F32: mica.weight @c : tensor<16x32xf32>
// INT4: mica.weight @c : tensor<16x32x!mica.block<int4_g32>>
mica.weight @c : tensor<16x32xf32>
// Stored in blocks that cannot be preserved, because the weight is transposed.
// F32: mica.weight @d {{.*}} : tensor<16x32xf32>
// INT4: mica.weight @d {{.*}} : tensor<16x32x!mica.block<int4_g32>>
mica.weight @d from [#mica.slice<"w", transposed>] {stored = !mica.block<q8_0>} : tensor<16x32xf32>
func.func @main(%x: tensor<?x32xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>) {
  %a = mica.get_weight @a : tensor<16x32x!mica.block<q8_0>>
  %b = mica.get_weight @b : tensor<16x32x!mica.block<q4_1>>
  %c = mica.get_weight @c : tensor<16x32xf32>
  %d = mica.get_weight @d : tensor<16x32xf32>
  // CHECK: %[[R:.*]] = mica.cast %{{.*}} : tensor<?x32xf32> to tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
  // CHECK: mica.linear %[[R]], {{.*}} : tensor<?x32x!mica.int_rows<bits = 16, group = 32>>, tensor<16x32x!mica.block<q8_0>> -> tensor<?x16xf32>
  %0 = mica.linear %x, %a : tensor<?x32xf32>, tensor<16x32x!mica.block<q8_0>> -> tensor<?x16xf32>
  // CHECK: mica.linear %[[R]], {{.*}} : tensor<?x32x!mica.int_rows<bits = 16, group = 32>>, tensor<16x32x!mica.block<q4_1>> -> tensor<?x16xf32>
  %1 = mica.linear %x, %b : tensor<?x32xf32>, tensor<16x32x!mica.block<q4_1>> -> tensor<?x16xf32>
  // F32: mica.linear %{{.*}} : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
  // INT4: mica.linear %{{.*}} : tensor<?x32x!mica.int_rows<bits = 16, group = 32>>, tensor<16x32x!mica.block<int4_g32>> -> tensor<?x16xf32>
  %2 = mica.linear %x, %c : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
  %3 = mica.linear %x, %d : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
  return %0, %1, %2, %3 : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>
}

// -----

// The matmuls of experts share an activation type: if a matrix is float, activations are float as well, and blocks are expanded.
mica.weight @gate : tensor<4x128x32xf32>
mica.weight @down : tensor<4x32x64x!mica.block<q8_0>>
func.func @main(%x: tensor<?x32xf32>, %p: tensor<?x2xf32>, %e: tensor<?x2xi32>) -> tensor<?x32xf32> {
  %gate = mica.get_weight @gate : tensor<4x128x32xf32>
  %down = mica.get_weight @down : tensor<4x32x64x!mica.block<q8_0>>
  // F32-NOT: mica.cast
  // F32: mica.moe_experts %{{.*}} : tensor<?x32xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x128x32xf32>, tensor<4x32x64x!mica.block<q8_0>>
  // INT4: mica.moe_experts %{{.*}} : tensor<?x32x!mica.int_rows<bits = 16, group = 32>>, {{.*}}tensor<4x128x32x!mica.block<int4_g32>>
  %y = mica.moe_experts %x, %p, %e, %gate, %down silu inner(64) : tensor<?x32xf32>, tensor<?x2xf32>,
      tensor<?x2xi32>, tensor<4x128x32xf32>, tensor<4x32x64x!mica.block<q8_0>> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

mica.weight @gate : tensor<4x128x32x!mica.block<q4_0>>
mica.weight @down : tensor<4x32x64xf32>
func.func @main(%x: tensor<?x32xf32>, %p: tensor<?x2xf32>, %e: tensor<?x2xi32>) -> tensor<?x32xf32> {
  %gate = mica.get_weight @gate : tensor<4x128x32x!mica.block<q4_0>>
  %down = mica.get_weight @down : tensor<4x32x64xf32>
  // F32-NOT: mica.cast
  // F32: mica.moe_experts %{{.*}} : tensor<?x32xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x128x32x!mica.block<q4_0>>, tensor<4x32x64xf32>
  %y = mica.moe_experts %x, %p, %e, %gate, %down silu inner(64) : tensor<?x32xf32>, tensor<?x2xf32>,
      tensor<?x2xi32>, tensor<4x128x32x!mica.block<q4_0>>, tensor<4x32x64xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
