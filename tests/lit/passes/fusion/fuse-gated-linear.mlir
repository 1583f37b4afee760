// RUN: mica-opt %s --split-input-file --mica-fuse-gated-linear | FileCheck %s

// CHECK-NOT: mica.weight
// CHECK: mica.weight @gate_up_proj.weight from ["gate_proj.weight", "up_proj.weight"] interleave : tensor<256x32xf32>
// CHECK-NOT: mica.weight
mica.weight @"gate_proj.weight" : tensor<72x32xf32>
mica.weight @"up_proj.weight" : tensor<72x32xf32>

// CHECK-LABEL: func private @layer
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<?x32xf32>, %[[W:[a-z0-9]+]]: tensor<256x32xf32>)
func.func private @layer(%x: tensor<?x32xf32>, %gate: tensor<72x32xf32>, %up: tensor<72x32xf32>) -> tensor<?x72xf32> {
  // CHECK-NEXT: %[[H:.*]] = mica.gated_linear %[[X]], %[[W]] silu : tensor<?x32xf32>, tensor<256x32xf32> -> tensor<?x72xf32>
  // CHECK-NEXT: return %[[H]]
  %g = mica.linear %x, %gate : tensor<?x32xf32>, tensor<72x32xf32> -> tensor<?x72xf32>
  %u = mica.linear %x, %up : tensor<?x32xf32>, tensor<72x32xf32> -> tensor<?x72xf32>
  %a = mica.silu %g : tensor<?x72xf32>
  %h = mica.mul %a, %u : tensor<?x72xf32>
  return %h : tensor<?x72xf32>
}

// CHECK-LABEL: func @main
func.func @main(%x: tensor<?x32xf32>) -> tensor<?x72xf32> {
  // CHECK-NEXT: %[[W:.*]] = mica.get_weight @gate_up_proj.weight : tensor<256x32xf32>
  // CHECK-NEXT: call @layer(%{{.*}}, %[[W]])
  %gate = mica.get_weight @"gate_proj.weight" : tensor<72x32xf32>
  %up = mica.get_weight @"up_proj.weight" : tensor<72x32xf32>
  %y = call @layer(%x, %gate, %up) : (tensor<?x32xf32>, tensor<72x32xf32>, tensor<72x32xf32>) -> tensor<?x72xf32>
  return %y : tensor<?x72xf32>
}

// -----

// The factors may be in either order, and so may the arguments with the weights.

// CHECK: mica.weight @w13 from ["w1", "w3"] interleave
mica.weight @w1 : tensor<64x32xf32>
mica.weight @w3 : tensor<64x32xf32>
// CHECK-LABEL: func private @swapped
func.func private @swapped(%x: tensor<?x32xf32>, %up: tensor<64x32xf32>, %gate: tensor<64x32xf32>) -> tensor<?x64xf32> {
  // CHECK: mica.gated_linear %{{.*}} gelu_tanh
  %u = mica.linear %x, %up : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %g = mica.linear %x, %gate : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %a = mica.gelu_tanh %g : tensor<?x64xf32>
  %h = mica.mul %u, %a : tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}
func.func @main(%x: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %gate = mica.get_weight @w1 : tensor<64x32xf32>
  %up = mica.get_weight @w3 : tensor<64x32xf32>
  %y = call @swapped(%x, %up, %gate) : (tensor<?x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// Another activation.

mica.weight @g : tensor<64x32xf32>
mica.weight @u : tensor<64x32xf32>
// CHECK-LABEL: func private @others
func.func private @others(%x: tensor<?x32xf32>, %gate: tensor<64x32xf32>, %up: tensor<64x32xf32>) -> tensor<?x64xf32> {
  // CHECK: mica.gated_linear %{{.*}} relu2
  %g = mica.linear %x, %gate : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %u = mica.linear %x, %up : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %a = mica.relu2 %g : tensor<?x64xf32>
  %h = mica.mul %a, %u : tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}
func.func @main(%x: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %gate = mica.get_weight @g : tensor<64x32xf32>
  %up = mica.get_weight @u : tensor<64x32xf32>
  %y = call @others(%x, %gate, %up) : (tensor<?x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// Experts: gate and up of each expert are interleaved.

// CHECK: mica.weight @experts.gate_up_proj from ["e0.gate", "e0.up", "e1.gate", "e1.up"] stack parts(2) : tensor<2x256x32xf32>
mica.weight @experts.gate_proj from ["e0.gate", "e1.gate"] stack : tensor<2x72x32xf32>
mica.weight @experts.up_proj from ["e0.up", "e1.up"] stack : tensor<2x72x32xf32>
mica.weight @experts.down_proj from ["e0.down", "e1.down"] stack : tensor<2x32x72xf32>
// CHECK-LABEL: func private @moe
func.func private @moe(%x: tensor<?x32xf32>, %w: tensor<?x1xf32>, %e: tensor<?x1xi32>, %gate: tensor<2x72x32xf32>, %up: tensor<2x72x32xf32>,
    %down: tensor<2x32x72xf32>) -> tensor<?x32xf32> {
  // CHECK: mica.moe_experts %{{[^(]*}} silu inner(72) : {{.*}} tensor<2x256x32xf32>, tensor<2x32x72xf32>
  %y = mica.moe_experts %x, %w, %e, %gate, %down up(%up : tensor<2x72x32xf32>) silu inner(72)
      : tensor<?x32xf32>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x72x32xf32>, tensor<2x32x72xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
func.func @main(%x: tensor<?x32xf32>, %w: tensor<?x1xf32>, %e: tensor<?x1xi32>) -> tensor<?x32xf32> {
  %gate = mica.get_weight @experts.gate_proj : tensor<2x72x32xf32>
  %up = mica.get_weight @experts.up_proj : tensor<2x72x32xf32>
  %down = mica.get_weight @experts.down_proj : tensor<2x32x72xf32>
  %y = call @moe(%x, %w, %e, %gate, %up, %down)
      : (tensor<?x32xf32>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x72x32xf32>, tensor<2x72x32xf32>, tensor<2x32x72xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// CHECK-LABEL: func private @no_bias
func.func private @no_bias(%x: tensor<?x32xf32>, %gate: tensor<64x32xf32>, %up: tensor<64x32xf32>, %b: tensor<64xf32>) -> tensor<?x64xf32> {
  // CHECK-NOT: gated_linear
  %u = mica.linear %x, %up : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %g = mica.linear %x, %gate bias(%b : tensor<64xf32>) : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %a = mica.silu %g : tensor<?x64xf32>
  %h = mica.mul %u, %a : tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}

// CHECK-LABEL: func private @no_different_rows
func.func private @no_different_rows(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>, %gate: tensor<64x32xf32>, %up: tensor<64x32xf32>) -> tensor<?x64xf32> {
  // CHECK-NOT: gated_linear
  %u = mica.linear %x, %up : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %g = mica.linear %y, %gate : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %a = mica.silu %g : tensor<?x64xf32>
  %h = mica.mul %u, %a : tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}

// CHECK-LABEL: func private @no_second_use
func.func private @no_second_use(%x: tensor<?x32xf32>, %gate: tensor<64x32xf32>, %up: tensor<64x32xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK-NOT: gated_linear
  %u = mica.linear %x, %up : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %g = mica.linear %x, %gate : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %a = mica.silu %g : tensor<?x64xf32>
  %h = mica.mul %u, %a : tensor<?x64xf32>
  return %h, %g : tensor<?x64xf32>, tensor<?x64xf32>
}

// CHECK-LABEL: func @no_public_function
func.func @no_public_function(%x: tensor<?x32xf32>, %gate: tensor<64x32xf32>, %up: tensor<64x32xf32>) -> tensor<?x64xf32> {
  // CHECK-NOT: gated_linear
  %u = mica.linear %x, %up : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %g = mica.linear %x, %gate : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %a = mica.silu %g : tensor<?x64xf32>
  %h = mica.mul %u, %a : tensor<?x64xf32>
  return %h : tensor<?x64xf32>
}

// -----

// Gate and up of experts that have different types stay separate.
mica.weight @gate from ["e0.gate", "e1.gate"] stack : tensor<2x64x32x!mica.block<q4_0>>
mica.weight @up from ["e0.up", "e1.up"] stack : tensor<2x64x32xbf16>
mica.weight @down from ["e0.down", "e1.down"] stack : tensor<2x32x64xbf16>
// CHECK-LABEL: func private @no_different_types
func.func private @no_different_types(%x: tensor<?x32xbf16>, %w: tensor<?x1xf32>, %e: tensor<?x1xi32>,
    %gate: tensor<2x64x32x!mica.block<q4_0>>, %up: tensor<2x64x32xbf16>, %down: tensor<2x32x64xbf16>) -> tensor<?x32xf32> {
  // CHECK: mica.moe_experts %{{.*}} up(%{{.*}} : tensor<2x64x32xbf16>)
  %y = mica.moe_experts %x, %w, %e, %gate, %down up(%up : tensor<2x64x32xbf16>) silu inner(64)
      : tensor<?x32xbf16>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x64x32x!mica.block<q4_0>>, tensor<2x32x64xbf16> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
func.func @main(%x: tensor<?x32xbf16>, %w: tensor<?x1xf32>, %e: tensor<?x1xi32>) -> tensor<?x32xf32> {
  %gate = mica.get_weight @gate : tensor<2x64x32x!mica.block<q4_0>>
  %up = mica.get_weight @up : tensor<2x64x32xbf16>
  %down = mica.get_weight @down : tensor<2x32x64xbf16>
  %y = call @no_different_types(%x, %w, %e, %gate, %up, %down)
      : (tensor<?x32xbf16>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x64x32x!mica.block<q4_0>>, tensor<2x64x32xbf16>, tensor<2x32x64xbf16>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// A checkpoint tensor that contains all experts cannot be split into them.
mica.weight @gate : tensor<2x64x32xf32>
mica.weight @up : tensor<2x64x32xf32>
mica.weight @down : tensor<2x32x64xf32>
// CHECK-LABEL: func private @no_stack
func.func private @no_stack(%x: tensor<?x32xf32>, %w: tensor<?x1xf32>, %e: tensor<?x1xi32>, %gate: tensor<2x64x32xf32>, %up: tensor<2x64x32xf32>,
    %down: tensor<2x32x64xf32>) -> tensor<?x32xf32> {
  // CHECK: mica.moe_experts %{{.*}} up(
  %y = mica.moe_experts %x, %w, %e, %gate, %down up(%up : tensor<2x64x32xf32>) silu inner(64)
      : tensor<?x32xf32>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x64x32xf32>, tensor<2x32x64xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
func.func @main(%x: tensor<?x32xf32>, %w: tensor<?x1xf32>, %e: tensor<?x1xi32>) -> tensor<?x32xf32> {
  %gate = mica.get_weight @gate : tensor<2x64x32xf32>
  %up = mica.get_weight @up : tensor<2x64x32xf32>
  %down = mica.get_weight @down : tensor<2x32x64xf32>
  %y = call @no_stack(%x, %w, %e, %gate, %up, %down)
      : (tensor<?x32xf32>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x64x32xf32>, tensor<2x64x32xf32>, tensor<2x32x64xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
