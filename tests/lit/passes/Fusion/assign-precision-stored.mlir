// RUN: mica-opt %s "--mica-assign-precision=weights=int4 keep-bits=true" | FileCheck %s
// RUN: mica-opt %s --mica-assign-precision=weights=int4 | FileCheck %s --check-prefix=ASKED
// RUN: mica-opt %s "--mica-assign-precision=weights=bf16 keep-bits=true" | FileCheck %s --check-prefix=FINER

// What is stored in 8 bits, and could not keep its blocks, has no fewer; experts are of one kind.
// CHECK: mica.weight @turned {{.*}} : tensor<32x32x!mica.int8>
// CHECK: mica.weight @four {{.*}} : tensor<32x32x!mica.int4<group = 32>>
// CHECK: mica.weight @none : tensor<32x32x!mica.int4<group = 32>>
// CHECK: mica.weight @gate {{.*}} : tensor<4x128x32x!mica.int8>
// CHECK: mica.weight @down : tensor<4x32x64x!mica.int8>
// ASKED: mica.weight @turned {{.*}} : tensor<32x32x!mica.int4<group = 32>>
// ASKED: mica.weight @gate {{.*}} : tensor<4x128x32x!mica.int4<group = 32>>
// FINER: mica.weight @turned {{.*}} : tensor<32x32xbf16>
mica.weight @turned from ["w^T"] {stored = !mica.block_int<bits = 8, group = 32>} : tensor<32x32xf32>
mica.weight @four from ["v^T"] {stored = !mica.block_int<bits = 4, group = 32>} : tensor<32x32xf32>
mica.weight @none : tensor<32x32xf32>
mica.weight @gate {stored = !mica.block_int<bits = 8, group = 32>} : tensor<4x128x32xf32>
mica.weight @down : tensor<4x32x64xf32>
func.func @main(%x: tensor<?x32xf32>, %p: tensor<?x2xf32>, %e: tensor<?x2xi32>) -> tensor<?x32xf32> {
  %turned = mica.get_weight @turned : tensor<32x32xf32>
  %four = mica.get_weight @four : tensor<32x32xf32>
  %none = mica.get_weight @none : tensor<32x32xf32>
  %gate = mica.get_weight @gate : tensor<4x128x32xf32>
  %down = mica.get_weight @down : tensor<4x32x64xf32>
  %0 = mica.linear %x, %turned : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %1 = mica.linear %0, %four : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %2 = mica.linear %1, %none : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %y = mica.moe_experts %2, %p, %e, %gate, %down silu inner(64) : tensor<?x32xf32>, tensor<?x2xf32>, tensor<?x2xi32>,
      tensor<4x128x32xf32>, tensor<4x32x64xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
