// RUN: mica-opt %s --split-input-file --mica-shard=ranks=2 | FileCheck %s --check-prefixes=CHECK,SHARD
// RUN: mica-opt %s --split-input-file --mica-shard=ranks=2 --mica-fuse-gated-linear --mica-fuse-casts | FileCheck %s --check-prefixes=CHECK,FUSED

// Experts become two halves, with the same roundings as one op. Gate and up of a rank are then one weight, and the first half rounds its
// result itself, as experts of one rank do.
// SHARD: mica.weight @gate from ["g0", "g1"] stack shard <axis = 1, ranks = 2> : tensor<2x36x32xbf16>
// FUSED: mica.weight @gate_up from ["g0", "u0", "g1", "u1"] stack parts(2) shard <axis = 1, ranks = 2> : tensor<2x128x32xbf16>
// FUSED-NOT: mica.weight @up
mica.weight @gate from ["g0", "g1"] stack : tensor<2x72x32xbf16>
mica.weight @up from ["u0", "u1"] stack : tensor<2x72x32xbf16>
// CHECK: mica.weight @down from ["d0", "d1"] stack shard <axis = 1, ranks = 2> : tensor<2x16x72xbf16>
mica.weight @down from ["d0", "d1"] stack : tensor<2x32x72xbf16>
// CHECK-LABEL: func.func private @layer
func.func private @layer(%x: tensor<?x32xbf16>, %w: tensor<?x1xf32>, %e: tensor<?x1xi32>, %gate: tensor<2x72x32xbf16>, %up: tensor<2x72x32xbf16>,
    %down: tensor<2x32x72xbf16>) -> tensor<?x32xf32> {
  // SHARD: %[[WIDE:.*]] = mica.moe_gate_up %{{.*}} up(%{{.*}} : tensor<2x36x32xbf16>) silu {{.*}} -> tensor<?x1x36xf32>
  // SHARD: %[[PART:.*]] = mica.cast %[[WIDE]] : tensor<?x1x36xf32> to tensor<?x1x36xbf16>
  // FUSED: %[[PART:.*]] = mica.moe_gate_up %arg0, %arg2, %arg3 silu : tensor<?x32xbf16>, tensor<?x1xi32>, tensor<2x128x32xbf16> -> tensor<?x1x36xbf16>
  // CHECK-NEXT: %[[ALL:.*]] = mica.all_gather %[[PART]] ranks(2) : tensor<?x1x36xbf16> -> tensor<?x1x72xbf16>
  // CHECK-NEXT: %[[Y:.*]] = mica.moe_down %[[ALL]]
  // CHECK-NEXT: mica.all_gather %[[Y]] ranks(2) : tensor<?x16xf32> -> tensor<?x32xf32>
  %y = mica.moe_experts %x, %w, %e, %gate, %down up(%up : tensor<2x72x32xbf16>) silu inner(72)
      : tensor<?x32xbf16>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x72x32xbf16>, tensor<2x32x72xbf16> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
func.func @main(%x: tensor<?x32xbf16>, %w: tensor<?x1xf32>, %e: tensor<?x1xi32>) -> tensor<?x32xf32> {
  %gate = mica.get_weight @gate : tensor<2x72x32xbf16>
  %up = mica.get_weight @up : tensor<2x72x32xbf16>
  %down = mica.get_weight @down : tensor<2x32x72xbf16>
  %y = call @layer(%x, %w, %e, %gate, %up, %down)
      : (tensor<?x32xbf16>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x72x32xbf16>, tensor<2x72x32xbf16>, tensor<2x32x72xbf16>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// Gate and up of different types stay separate.
// CHECK: mica.weight @gate from ["g0", "g1"] stack shard <axis = 1, ranks = 2> : tensor<2x32x32x!mica.block<q4_0>>
mica.weight @gate from ["g0", "g1"] stack : tensor<2x64x32x!mica.block<q4_0>>
// CHECK: mica.weight @up from ["u0", "u1"] stack shard <axis = 1, ranks = 2> : tensor<2x32x32xbf16>
mica.weight @up from ["u0", "u1"] stack : tensor<2x64x32xbf16>
mica.weight @down from ["d0", "d1"] stack : tensor<2x32x64xbf16>
// CHECK-LABEL: func.func private @layer
func.func private @layer(%x: tensor<?x32xbf16>, %w: tensor<?x1xf32>, %e: tensor<?x1xi32>, %gate: tensor<2x64x32x!mica.block<q4_0>>,
    %up: tensor<2x64x32xbf16>, %down: tensor<2x32x64xbf16>) -> tensor<?x32xf32> {
  // CHECK: mica.moe_gate_up %{{.*}} up(%{{.*}} : tensor<2x32x32xbf16>) silu : tensor<?x32xbf16>, tensor<?x1xi32>, tensor<2x32x32x!mica.block<q4_0>>
  %y = mica.moe_experts %x, %w, %e, %gate, %down up(%up : tensor<2x64x32xbf16>) silu inner(64)
      : tensor<?x32xbf16>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x64x32x!mica.block<q4_0>>, tensor<2x32x64xbf16> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
func.func @main(%x: tensor<?x32xbf16>, %w: tensor<?x1xf32>, %e: tensor<?x1xi32>) -> tensor<?x32xf32> {
  %gate = mica.get_weight @gate : tensor<2x64x32x!mica.block<q4_0>>
  %up = mica.get_weight @up : tensor<2x64x32xbf16>
  %down = mica.get_weight @down : tensor<2x32x64xbf16>
  %y = call @layer(%x, %w, %e, %gate, %up, %down)
      : (tensor<?x32xbf16>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x64x32x!mica.block<q4_0>>, tensor<2x64x32xbf16>, tensor<2x32x64xbf16>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
