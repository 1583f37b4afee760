// RUN: mica-opt %s --mica-preserve-blocks=weights=bf16 --split-input-file --verify-diagnostics | FileCheck %s

// Through a call, of two layers; the embedding is also the output matrix.
// CHECK-LABEL: module @kept
// CHECK: mica.weight @table {{.*}} : tensor<96x32x!mica.block<q4_0>>
// CHECK: mica.weight @norm : tensor<32xf32>
// CHECK: mica.weight @a {{.*}} : tensor<32x32x!mica.block<q8_0>>
// CHECK: mica.weight @b {{.*}} : tensor<32x32x!mica.block<q8_0>>
// CHECK: func.func private @layer(%{{.*}}: tensor<?x32xf32>, %{{.*}}: tensor<32xf32>, %{{.*}}: tensor<32x32x!mica.block<q8_0>>)
module @kept {
  mica.weight @table {stored = !mica.block<q4_0>} : tensor<96x32xf32>
  mica.weight @norm : tensor<32xf32>
  mica.weight @a {stored = !mica.block<q8_0>} : tensor<32x32xf32>
  mica.weight @b from [#mica.slice<"b", rows 0 to 32 of 48>] {stored = !mica.block<q8_0>} : tensor<32x32xf32>
  func.func private @layer(%x: tensor<?x32xf32>, %norm: tensor<32xf32>, %w: tensor<32x32xf32>) -> tensor<?x32xf32> {
    %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
    %y = mica.linear %n, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
  func.func @main(%t: tensor<?xi32>) -> tensor<?x96xf32> {
    %table = mica.get_weight @table : tensor<96x32xf32>
    %norm = mica.get_weight @norm : tensor<32xf32>
    %a = mica.get_weight @a : tensor<32x32xf32>
    %b = mica.get_weight @b : tensor<32x32xf32>
    %x = mica.embedding %t, %table : tensor<?xi32>, tensor<96x32xf32> -> tensor<?x32xf32>
    %y = call @layer(%x, %norm, %a) : (tensor<?x32xf32>, tensor<32xf32>, tensor<32x32xf32>) -> tensor<?x32xf32>
    %z = call @layer(%y, %norm, %b) : (tensor<?x32xf32>, tensor<32xf32>, tensor<32x32xf32>) -> tensor<?x32xf32>
    %l = mica.lm_head %z, %table : tensor<?x32xf32>, tensor<96x32xf32> -> tensor<?x96xf32>
    return %l : tensor<?x96xf32>
  }
}

// -----

// CHECK-LABEL: module @no_blocks
// CHECK-NOT: tensor<{{.*}}!mica.block<
module @no_blocks {
  // expected-warning @+1 {{blocks of q8_0 become bf16: it is read transposed}}
  mica.weight @transposed from [#mica.slice<"w", transposed>] {stored = !mica.block<q8_0>} : tensor<32x32xf32>
  // expected-warning @+1 {{blocks of q8_0 become bf16: its row length is not a multiple of the block size}}
  mica.weight @short from [#mica.slice<"w", rows 0 to 16 of 32>] {stored = !mica.block<q8_0>} : tensor<16x48xf32>
  // expected-warning @+1 {{blocks of q8_0 become f32: it is used by an op other than a matmul or an embedding lookup}}
  mica.weight @router {stored = !mica.block<q8_0>} : tensor<4x32xf32>
  // expected-warning @+1 {{blocks of q5_0 become f32: it is used by an op other than a matmul or an embedding lookup}}
  mica.weight @router_alone {stored = !mica.block<q5_0>} : tensor<4x32xf32>
  // expected-warning @+1 {{blocks of q8_0 become bf16: weights of other layers that share its argument are stored in another format}}
  mica.weight @a {stored = !mica.block<q8_0>} : tensor<32x32xf32>
  // expected-warning @+1 {{blocks of q4_0 become bf16: weights of other layers that share its argument are stored in another format}}
  mica.weight @b {stored = !mica.block<q4_0>} : tensor<32x32xf32>
  func.func private @inner(%x: tensor<?x32xf32>, %w: tensor<32x32xf32>) -> tensor<?x32xf32> {
    %y = mica.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
  func.func private @layer(%x: tensor<?x32xf32>, %w: tensor<32x32xf32>) -> tensor<?x32xf32> {
    %y = call @inner(%x, %w) : (tensor<?x32xf32>, tensor<32x32xf32>) -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
  func.func @main(%x: tensor<?x32xf32>, %v: tensor<?x48xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x2xf32>, tensor<?x2xf32>) {
    %transposed = mica.get_weight @transposed : tensor<32x32xf32>
    %short = mica.get_weight @short : tensor<16x48xf32>
    %router = mica.get_weight @router : tensor<4x32xf32>
    %a = mica.get_weight @a : tensor<32x32xf32>
    %b = mica.get_weight @b : tensor<32x32xf32>
    %u = mica.linear %x, %transposed : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    %s = mica.linear %v, %short : tensor<?x48xf32>, tensor<16x48xf32> -> tensor<?x16xf32>
    %l = mica.linear %u, %router : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x4xf32>
    %p, %e = mica.moe_gate %x, %router softmax k(2) : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
    %alone = mica.get_weight @router_alone : tensor<4x32xf32>
    %p2, %e2 = mica.moe_gate %x, %alone softmax k(2) : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
    %y = call @layer(%u, %a) : (tensor<?x32xf32>, tensor<32x32xf32>) -> tensor<?x32xf32>
    %z = call @layer(%y, %b) : (tensor<?x32xf32>, tensor<32x32xf32>) -> tensor<?x32xf32>
    return %z, %s, %p, %p2 : tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x2xf32>, tensor<?x2xf32>
  }
}

// -----

// The format of down does not affect gate and up.
// CHECK-LABEL: module @experts_without_blocks_of_down
// CHECK: mica.weight @gate {{.*}} : tensor<4x64x32x!mica.block<q4_0>>
// CHECK: mica.weight @up {{.*}} : tensor<4x64x32x!mica.block<q4_0>>
// CHECK: mica.weight @down : tensor<4x32x64xf32>
module @experts_without_blocks_of_down {
  mica.weight @gate {stored = !mica.block<q4_0>} : tensor<4x64x32xf32>
  mica.weight @up {stored = !mica.block<q4_0>} : tensor<4x64x32xf32>
  mica.weight @down : tensor<4x32x64xf32>
  func.func @main(%x: tensor<?x32xf32>, %p: tensor<?x2xf32>, %e: tensor<?x2xi32>) -> tensor<?x32xf32> {
    %gate = mica.get_weight @gate : tensor<4x64x32xf32>
    %up = mica.get_weight @up : tensor<4x64x32xf32>
    %down = mica.get_weight @down : tensor<4x32x64xf32>
    %y = mica.moe_experts %x, %p, %e, %gate, %down up(%up : tensor<4x64x32xf32>) silu inner(64) : tensor<?x32xf32>, tensor<?x2xf32>,
        tensor<?x2xi32>, tensor<4x64x32xf32>, tensor<4x32x64xf32> -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
}

// -----

// Gate, up and down keep their blocks independently of each other.
// CHECK-LABEL: module @experts_of_several_formats
// CHECK: mica.weight @gate {{.*}} : tensor<4x64x32x!mica.block<q4_0>>
// CHECK: mica.weight @up {{.*}} : tensor<4x64x32x!mica.block<q8_0>>
// CHECK: mica.weight @down {{.*}} : tensor<4x32x64x!mica.block<q5_0>>
module @experts_of_several_formats {
  mica.weight @gate {stored = !mica.block<q4_0>} : tensor<4x64x32xf32>
  mica.weight @up from [#mica.slice<"ups", rows 0 to 1 of 1>] {stored = !mica.block<q8_0>} : tensor<4x64x32xf32>
  mica.weight @down {stored = !mica.block<q5_0>} : tensor<4x32x64xf32>
  func.func @main(%x: tensor<?x32xf32>, %p: tensor<?x2xf32>, %e: tensor<?x2xi32>) -> tensor<?x32xf32> {
    %gate = mica.get_weight @gate : tensor<4x64x32xf32>
    %up = mica.get_weight @up : tensor<4x64x32xf32>
    %down = mica.get_weight @down : tensor<4x32x64xf32>
    %y = mica.moe_experts %x, %p, %e, %gate, %down up(%up : tensor<4x64x32xf32>) silu inner(64) : tensor<?x32xf32>, tensor<?x2xf32>,
        tensor<?x2xi32>, tensor<4x64x32xf32>, tensor<4x32x64xf32> -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
}

// -----

// CHECK-LABEL: module @experts_with_blocks_of_gate
// CHECK: mica.weight @gate {{.*}} : tensor<4x64x32x!mica.block<q4_0>>
// CHECK: mica.weight @up : tensor<4x64x32xf16>
// CHECK: mica.weight @down {{.*}} : tensor<4x32x64x!mica.block<q8_0>>
module @experts_with_blocks_of_gate {
  mica.weight @gate {stored = !mica.block<q4_0>} : tensor<4x64x32xf32>
  mica.weight @up : tensor<4x64x32xf16>
  mica.weight @down {stored = !mica.block<q8_0>} : tensor<4x32x64xf32>
  func.func @main(%x: tensor<?x32xf32>, %p: tensor<?x2xf32>, %e: tensor<?x2xi32>) -> tensor<?x32xf32> {
    %gate = mica.get_weight @gate : tensor<4x64x32xf32>
    %up = mica.get_weight @up : tensor<4x64x32xf16>
    %down = mica.get_weight @down : tensor<4x32x64xf32>
    %y = mica.moe_experts %x, %p, %e, %gate, %down up(%up : tensor<4x64x32xf16>) silu inner(64) : tensor<?x32xf32>, tensor<?x2xf32>,
        tensor<?x2xi32>, tensor<4x64x32xf32>, tensor<4x32x64xf32> -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
}

// -----

// Three layers of two types, which differ in the formats of their weights.
// CHECK-LABEL: module @kinds
// CHECK: func.func private @layer(%{{.*}}: tensor<?x32xf32>, %{{.*}}: tensor<32x32x!mica.block<q8_0>>)
// CHECK: func.func private @layer_0(%{{.*}}: tensor<?x32xf32>, %{{.*}}: tensor<32x32x!mica.block<q4_0>>)
// CHECK: call @layer(
// CHECK: call @layer_0(
// CHECK: call @layer(
module @kinds {
  mica.weight @a {stored = !mica.block<q8_0>} : tensor<32x32xf32>
  mica.weight @b {stored = !mica.block<q4_0>} : tensor<32x32xf32>
  mica.weight @c {stored = !mica.block<q8_0>} : tensor<32x32xf32>
  func.func private @layer(%x: tensor<?x32xf32>, %w: tensor<32x32xf32>) -> tensor<?x32xf32> {
    %y = mica.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    %a = mica.get_weight @a : tensor<32x32xf32>
    %b = mica.get_weight @b : tensor<32x32xf32>
    %c = mica.get_weight @c : tensor<32x32xf32>
    %0 = call @layer(%x, %a) : (tensor<?x32xf32>, tensor<32x32xf32>) -> tensor<?x32xf32>
    %1 = call @layer(%0, %b) : (tensor<?x32xf32>, tensor<32x32xf32>) -> tensor<?x32xf32>
    %2 = call @layer(%1, %c) : (tensor<?x32xf32>, tensor<32x32xf32>) -> tensor<?x32xf32>
    return %2 : tensor<?x32xf32>
  }
}
