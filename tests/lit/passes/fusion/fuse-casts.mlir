// RUN: mica-opt %s --mica-fuse-casts | FileCheck %s

// CHECK-LABEL: func @norm
func.func @norm(%x: tensor<?x32xf32>, %w: tensor<32xf32>) -> tensor<?x32xbf16> {
  // CHECK-NEXT: %[[N:.*]] = mica.rmsnorm {{.*}} -> tensor<?x32xbf16>
  // CHECK-NEXT: return %[[N]]
  %n = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
  %b = mica.cast %n : tensor<?x32xf32> to tensor<?x32xbf16>
  return %b : tensor<?x32xbf16>
}

// Heads are merged between attention and the cast.
// CHECK-LABEL: func @attention
func.func @attention(%q: tensor<?x4x8xbf16>, %k: tensor<?x?x2x8xbf16>, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x32xbf16> {
  // CHECK-NEXT: %[[A:.*]] = mica.attention {{.*}} -> tensor<?x4x8xbf16>
  // CHECK-NEXT: %[[M:.*]] = mica.merge_heads %[[A]] : tensor<?x4x8xbf16> to tensor<?x32xbf16>
  // CHECK-NEXT: return %[[M]]
  %a = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xbf16>, tensor<?x?x2x8xbf16>, tensor<?x?x2x8xbf16> -> tensor<?x4x8xf32>
  %m = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
  %b = mica.cast %m : tensor<?x32xf32> to tensor<?x32xbf16>
  return %b : tensor<?x32xbf16>
}

// CHECK-LABEL: func @gated
func.func @gated(%x: tensor<?x32xbf16>, %w: tensor<128x32xbf16>) -> (tensor<?x64xbf16>, tensor<?x64xbf16>) {
  // CHECK-NEXT: mica.gated_linear {{.*}} -> tensor<?x64xbf16>
  // CHECK-NOT: mica.cast
  %h = mica.gated_linear %x, %w silu : tensor<?x32xbf16>, tensor<128x32xbf16> -> tensor<?x64xf32>
  %b = mica.cast %h : tensor<?x64xf32> to tensor<?x64xbf16>
  %c = mica.cast %h : tensor<?x64xf32> to tensor<?x64xbf16>
  return %b, %c : tensor<?x64xbf16>, tensor<?x64xbf16>
}

// CHECK-LABEL: func @inner_of_experts
func.func @inner_of_experts(%x: tensor<?x32xbf16>, %e: tensor<?x2xi32>, %w: tensor<4x128x32xbf16>) -> tensor<?x2x64xbf16> {
  // CHECK-NEXT: mica.moe_gate_up {{.*}} -> tensor<?x2x64xbf16>
  // CHECK-NEXT: return
  %h = mica.moe_gate_up %x, %e, %w silu : tensor<?x32xbf16>, tensor<?x2xi32>, tensor<4x128x32xbf16> -> tensor<?x2x64xf32>
  %b = mica.cast %h : tensor<?x2x64xf32> to tensor<?x2x64xbf16>
  return %b : tensor<?x2x64xbf16>
}

// CHECK-LABEL: func @queries
func.func @queries(%qkv: tensor<?x64xf32>, %t: tensor<?x2x4xf32>, %k: !mica.kv_cache<2 x 2 x 8 x bf16>, %v: !mica.kv_cache<2 x 2 x 8 x bf16>,
    %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> (tensor<?x4x8xbf16>, !mica.kv_cache<2 x 2 x 8 x bf16>, !mica.kv_cache<2 x 2 x 8 x bf16>) {
  // CHECK: mica.qkv_append {{.*}} -> tensor<?x4x8xbf16>
  // CHECK-NOT: mica.cast
  %q, %k1, %v1 = mica.qkv_append %qkv, %t, %k, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
      : tensor<?x64xf32>, tensor<?x2x4xf32>, !mica.kv_cache<2 x 2 x 8 x bf16>, !mica.kv_cache<2 x 2 x 8 x bf16> -> tensor<?x4x8xf32>
  %b = mica.cast %q : tensor<?x4x8xf32> to tensor<?x4x8xbf16>
  return %b, %k1, %v1 : tensor<?x4x8xbf16>, !mica.kv_cache<2 x 2 x 8 x bf16>, !mica.kv_cache<2 x 2 x 8 x bf16>
}

// The router needs the norm in f32.
// CHECK-LABEL: func @no_wide_use
func.func @no_wide_use(%x: tensor<?x32xf32>, %w: tensor<32xf32>, %g: tensor<4x32xf32>) -> (tensor<?x32xbf16>, tensor<?x1xf32>, tensor<?x1xi32>) {
  // CHECK: mica.rmsnorm {{.*}} -> tensor<?x32xf32>
  // CHECK: mica.cast
  %n = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
  %b = mica.cast %n : tensor<?x32xf32> to tensor<?x32xbf16>
  %v, %e = mica.moe_gate %n, %g softmax k(1) : tensor<?x32xf32>, tensor<4x32xf32> -> tensor<?x1xf32>, tensor<?x1xi32>
  return %b, %v, %e : tensor<?x32xbf16>, tensor<?x1xf32>, tensor<?x1xi32>
}

// The matmul's result is the residual stream and stays f32.
// CHECK-LABEL: func @no_product
func.func @no_product(%x: tensor<?x32xf32>, %w: tensor<32x32xf32>) -> tensor<?x32xbf16> {
  // CHECK: mica.linear {{.*}} -> tensor<?x32xf32>
  // CHECK: mica.cast
  %y = mica.linear %x, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %b = mica.cast %y : tensor<?x32xf32> to tensor<?x32xbf16>
  return %b : tensor<?x32xbf16>
}

// CHECK-LABEL: func @no_merged_heads_used_wide
func.func @no_merged_heads_used_wide(%a: tensor<?x4x8xf32>) -> (tensor<?x32xf32>, tensor<?x32xbf16>) {
  // CHECK: mica.merge_heads {{.*}} : tensor<?x4x8xf32>
  %m = mica.merge_heads %a : tensor<?x4x8xf32> to tensor<?x32xf32>
  %b = mica.cast %m : tensor<?x32xf32> to tensor<?x32xbf16>
  return %m, %b : tensor<?x32xf32>, tensor<?x32xbf16>
}

// Norms write integer rows themselves; after a gated matmul and merged heads, quantization is a separate op.
// CHECK-LABEL: func @quantized
func.func @quantized(%x: tensor<?x32xf32>, %w: tensor<32xf32>) -> tensor<?x32x!mica.int_rows<bits = 16, group = 32>> {
  // CHECK-NEXT: mica.rmsnorm {{.*}} -> tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
  // CHECK-NOT: mica.cast
  %n = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
  %b = mica.cast %n : tensor<?x32xf32> to tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
  return %b : tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
}

// CHECK-LABEL: func @no_quantized_columns
func.func @no_quantized_columns(%x: tensor<?x32xbf16>, %w: tensor<128x32xbf16>, %h: tensor<?x4x8xf32>)
    -> (tensor<?x64x!mica.int_rows<bits = 16, group = 32>>, tensor<?x32x!mica.int_rows<bits = 16, group = 32>>) {
  // CHECK-NEXT: mica.gated_linear {{.*}} -> tensor<?x64xf32>
  // CHECK-NEXT: mica.cast
  // CHECK-NEXT: mica.merge_heads
  // CHECK-NEXT: mica.cast
  %g = mica.gated_linear %x, %w silu : tensor<?x32xbf16>, tensor<128x32xbf16> -> tensor<?x64xf32>
  %b = mica.cast %g : tensor<?x64xf32> to tensor<?x64x!mica.int_rows<bits = 16, group = 32>>
  %m = mica.merge_heads %h : tensor<?x4x8xf32> to tensor<?x32xf32>
  %c = mica.cast %m : tensor<?x32xf32> to tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
  return %b, %c : tensor<?x64x!mica.int_rows<bits = 16, group = 32>>, tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
}
