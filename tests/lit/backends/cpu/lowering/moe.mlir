// RUN: mica-opt %s --cpu-lower-to-exec --split-input-file --verify-diagnostics | FileCheck %s --implicit-check-not=mica.moe

#f32 = #mica.packed<columns = 64, depth = 1, k_block = 16>

// CHECK-LABEL: func.func private @moe
// CHECK: exec.launch @linear_4x32
// CHECK: %[[GATE:.*]]:2 = exec.launch @moe_gate
// CHECK: %[[ROUTE:.*]]:2 = exec.launch @moe_route tasks(%c1{{.*}}) ins(%[[GATE]]#1
// CHECK: %[[H:.*]] = exec.launch @experts_up_48x32 tasks(%c4{{.*}}) ins(%arg0, %[[ROUTE]]#0, %[[ROUTE]]#1, %arg2
// CHECK: %[[PARTS:.*]] = exec.launch @experts_down_32x48 tasks(%c4{{.*}}) ins(%[[H]]
// CHECK: exec.launch @experts_combine tasks(%{{.*}}) ins(%[[PARTS]], %[[GATE]]#0 {{.*}} outs(%arg0
func.func private @moe(%x: tensor<?x32xf32>, %gate: tensor<4x32xf32, #f32>, %gate_up: tensor<4x128x32xf32, #f32>,
    %down: tensor<4x32x48xf32, #f32>) -> tensor<?x32xf32> {
  %w, %e = mica.moe_gate %x, %gate softmax k(2) normalize : tensor<?x32xf32>, tensor<4x32xf32, #f32> -> tensor<?x2xf32>, tensor<?x2xi32>
  %y = mica.moe_experts %x, %w, %e, %gate_up, %down residual(%x : tensor<?x32xf32>) silu inner(48)
      : tensor<?x32xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x128x32xf32, #f32>, tensor<4x32x48xf32, #f32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// An expert's weights are read only if a row has chosen it.
// CHECK: func.func private @linear_4x32({{.*}} #exec.cost<weight_bytes = 8192, row_flops = 256>
// CHECK: func.func private @experts_up_48x32({{.*}} #exec.cost<expert_bytes = 16384, experts = 4, row_experts = 2, row_flops = 12288>
// CHECK: func.func private @experts_down_32x48({{.*}} #exec.cost<expert_bytes = 12288, experts = 4, row_experts = 2, row_flops = 6144>

// -----

#f32 = #mica.packed<columns = 64, depth = 1, k_block = 16>

// Without a residual, the experts' sum has a separate buffer, and float activations are not quantized.
// CHECK-LABEL: func.func private @no_residual
// CHECK-NOT: exec.launch @quantize
// CHECK-NOT: outs(%arg0
// CHECK: return
func.func private @no_residual(%x: tensor<?x32xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %gate_up: tensor<4x128x32xf32, #f32>,
    %down: tensor<4x32x48xf32, #f32>) -> tensor<?x32xf32> {
  %y = mica.moe_experts %x, %w, %e, %gate_up, %down silu inner(48)
      : tensor<?x32xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x128x32xf32, #f32>, tensor<4x32x48xf32, #f32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

#bf16 = #mica.packed<columns = 64, depth = 2, k_block = 32>
#blocks = #mica.packed<columns = 64, depth = 4, k_block = 64>

// Gate and up of different types: the product with up reads that with gate, and each has its share of the cost.
// CHECK-LABEL: func.func private @separate
// CHECK: %[[ROUTE:.*]]:2 = exec.launch @moe_route
// CHECK: %[[GATES:.*]] = exec.launch @experts_gate_48x32 tasks(%c4{{.*}}) ins(%arg0, %[[ROUTE]]#0, %[[ROUTE]]#1, %arg3, %arg6
// CHECK: %[[H:.*]] = exec.launch @experts_up_apart_48x32 tasks(%c4{{.*}}) ins(%arg0, %[[ROUTE]]#0, %[[ROUTE]]#1, %arg4, %[[GATES]], %arg7
// CHECK: exec.launch @experts_down_32x48 tasks(%c4{{.*}}) ins(%[[H]], {{.*}}%arg8
func.func private @separate(%x: tensor<?x32xbf16>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %gate: tensor<4x48x32xbf16, #bf16>,
    %up: tensor<4x48x32x!mica.block<q4_0>, #blocks>, %down: tensor<4x32x48xbf16, #bf16>, %bg: tensor<4x48xf32>, %bu: tensor<4x48xf32>,
    %bd: tensor<4x32xf32>) -> tensor<?x32xf32> {
  %y = mica.moe_experts %x, %w, %e, %gate, %down up(%up : tensor<4x48x32x!mica.block<q4_0>, #blocks>)
      biases(%bg, %bu, %bd : tensor<4x48xf32>, tensor<4x48xf32>, tensor<4x32xf32>) silu inner(48)
      : tensor<?x32xbf16>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x48x32xbf16, #bf16>, tensor<4x32x48xbf16, #bf16> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// CHECK: func.func private @experts_gate_48x32({{.*}} row_flops = 6144>
// CHECK: func.func private @experts_up_apart_48x32({{.*}} row_flops = 6144>

// -----

#f32 = #mica.packed<columns = 64, depth = 1, k_block = 16>

// The two halves of experts of several ranks have the kernels of the whole.
// CHECK-LABEL: func.func private @halves
// CHECK: %[[ROUTE:.*]]:2 = exec.launch @moe_route
// CHECK: %[[H:.*]] = exec.launch @experts_up_24x32 tasks(%{{.*}}) ins(%arg0, %[[ROUTE]]#0, %[[ROUTE]]#1, %arg3
// CHECK: %[[ALL:.*]] = exec.all_gather ins(%[[H]] : tensor<?x2x24xf32>) outs(%{{.*}} : tensor<?x2x48xf32>)
// CHECK: %[[AGAIN:.*]]:2 = exec.launch @moe_route
// CHECK: %[[PARTS:.*]] = exec.launch @experts_down_16x48 tasks(%{{.*}}) ins(%[[ALL]], %[[AGAIN]]#0, %[[AGAIN]]#1, %arg4
// CHECK: exec.launch @experts_combine tasks(%{{.*}}) ins(%[[PARTS]], %arg1 {{.*}} outs(%arg5
module attributes {mica.ranks = 2 : i64} {
  func.func private @halves(%x: tensor<?x32xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %gate_up: tensor<4x128x32xf32, #f32>,
      %down: tensor<4x16x48xf32, #f32>, %r: tensor<?x16xf32>) -> tensor<?x16xf32> {
    %h = mica.moe_gate_up %x, %e, %gate_up silu : tensor<?x32xf32>, tensor<?x2xi32>, tensor<4x128x32xf32, #f32> -> tensor<?x2x24xf32>
    %all = mica.all_gather %h ranks(2) : tensor<?x2x24xf32> -> tensor<?x2x48xf32>
    %y = mica.moe_down %all, %w, %e, %down residual(%r : tensor<?x16xf32>)
        : tensor<?x2x48xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x16x48xf32, #f32> -> tensor<?x16xf32>
    return %y : tensor<?x16xf32>
  }
}

// -----

#bf16 = #mica.packed<columns = 64, depth = 2, k_block = 32>
#blocks = #mica.packed<columns = 64, depth = 4, k_block = 64>

// Gate and up of different types have a product each, the second of which rounds.
// CHECK-LABEL: func.func private @first_half
// CHECK: %[[ROUTE:.*]]:2 = exec.launch @moe_route
// CHECK: %[[GATES:.*]] = exec.launch @experts_gate_24x32 tasks(%{{.*}}) ins(%arg0, %[[ROUTE]]#0, %[[ROUTE]]#1, %arg2
// CHECK: %[[H:.*]] = exec.launch @experts_up_apart_24x32 tasks(%{{.*}}) ins(%arg0, %[[ROUTE]]#0, %[[ROUTE]]#1, %arg3, %[[GATES]] {{.*}} outs(%{{.*}} : tensor<?x2x24xbf16>)
// CHECK: return %[[H]]
func.func private @first_half(%x: tensor<?x32xbf16>, %e: tensor<?x2xi32>, %gate: tensor<4x24x32xbf16, #bf16>,
    %up: tensor<4x24x32x!mica.block<q4_0>, #blocks>) -> tensor<?x2x24xbf16> {
  %h = mica.moe_gate_up %x, %e, %gate up(%up : tensor<4x24x32x!mica.block<q4_0>, #blocks>) silu
      : tensor<?x32xbf16>, tensor<?x2xi32>, tensor<4x24x32xbf16, #bf16> -> tensor<?x2x24xbf16>
  return %h : tensor<?x2x24xbf16>
}

// -----

#f32 = #mica.packed<columns = 64, depth = 1, k_block = 16>

func.func private @second_product_that_is_not_packed(%x: tensor<?x32xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>,
    %gate_up: tensor<4x128x32xf32, #f32>, %down: tensor<4x32x48xf32>) -> tensor<?x32xf32> {
  // expected-error @+2 {{'mica.moe_experts' op has a matrix without a packed layout}}
  // expected-error @+1 {{failed to legalize operation 'mica.moe_experts'}}
  %y = mica.moe_experts %x, %w, %e, %gate_up, %down silu inner(48)
      : tensor<?x32xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x128x32xf32, #f32>, tensor<4x32x48xf32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

#f32 = #mica.packed<columns = 64, depth = 1, k_block = 16>

func.func private @rows_of_integers_by_floats(%x: tensor<?x32x!mica.int_rows<bits = 16, group = 32>>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>,
    %gate_up: tensor<4x128x32xf32, #f32>, %down: tensor<4x32x48xf32, #f32>) -> tensor<?x32xf32> {
  // expected-error @+2 {{multiplies rows of '!mica.int_rows<bits = 16, group = 32>' by a weight of 'f32', expected one of !mica.block}}
  // expected-error @+1 {{failed to legalize operation 'mica.moe_experts'}}
  %y = mica.moe_experts %x, %w, %e, %gate_up, %down silu inner(48)
      : tensor<?x32x!mica.int_rows<bits = 16, group = 32>>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x128x32xf32, #f32>, tensor<4x32x48xf32, #f32> -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
