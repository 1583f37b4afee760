// RUN: mica-opt %s --mica-fuse-qkv-append | FileCheck %s

!cache = !mica.kv_cache<2 x 2 x 8 x f32>

// CHECK-LABEL: func @norms_rope_appends
// CHECK-SAME: %[[QKV:[a-z0-9]+]]: tensor<?x64xf32>, %[[K0:[a-z0-9]+]]: !mica.kv_cache<{{[^>]*}}>, %[[V0:[a-z0-9]+]]: !mica.kv_cache<{{[^>]*}}>,
// CHECK-SAME: %[[L:[a-z0-9]+]]: index, %[[S:[a-z0-9]+]]: tensor<?xi32>, %[[P:[a-z0-9]+]]: tensor<?xi32>, %[[NQ:[a-z0-9]+]]: tensor<8xf32>, %[[NK:[a-z0-9]+]]: tensor<8xf32>
func.func @norms_rope_appends(%qkv: tensor<?x64xf32>, %kc: !cache, %vc: !cache, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>,
    %nq: tensor<8xf32>, %nk: tensor<8xf32>) -> (tensor<?x4x8xf32>, !cache, !cache) {
  // CHECK-NEXT: %[[T:.*]] = mica.rope_table %[[P]] rotary_dim(8) theta(1.000000e+06) : tensor<?xi32> -> tensor<?x2x4xf32>
  // CHECK-NEXT: %[[Q:.*]], %[[K1:.*]], %[[V1:.*]] = mica.qkv_append %[[QKV]], %[[T]], %[[K0]], %[[V0]][%[[L]]] at(%[[S]], %[[P]]
  // CHECK-SAME: norms(%[[NQ]], %[[NK]] : tensor<8xf32>, tensor<8xf32>) half eps(1.000000e-05)
  // CHECK-NEXT: return %[[Q]], %[[K1]], %[[V1]]
  %q, %k, %v = mica.split %qkv : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
  %kh = mica.split_heads %k : tensor<?x16xf32> to tensor<?x2x8xf32>
  %vh = mica.split_heads %v : tensor<?x16xf32> to tensor<?x2x8xf32>
  %qn = mica.rmsnorm %qh, %nq eps(1.0e-05) : tensor<?x4x8xf32>, tensor<8xf32> -> tensor<?x4x8xf32>
  %kn = mica.rmsnorm %kh, %nk eps(1.0e-05) : tensor<?x2x8xf32>, tensor<8xf32> -> tensor<?x2x8xf32>
  %qr = mica.rope %qn, %p half theta(1.0e+06) : tensor<?x4x8xf32>, tensor<?xi32>
  %kr = mica.rope %kn, %p half theta(1.0e+06) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %vh, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %qr, %k1, %v1 : tensor<?x4x8xf32>, !cache, !cache
}

// CHECK-LABEL: func @partial_interleaved_scaled
func.func @partial_interleaved_scaled(%qkv: tensor<?x64xf32>, %kc: !cache, %vc: !cache, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x4x8xf32>, !cache, !cache) {
  // CHECK: mica.rope_table %{{.*}} rotary_dim(4) theta(1.000000e+04) scaling(#mica.linear_scaling<factor = 2.{{.*}}>) : tensor<?xi32> -> tensor<?x2x2xf32>
  // CHECK: mica.qkv_append {{.*}} interleaved :
  %q, %k, %v = mica.split %qkv : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
  %kh = mica.split_heads %k : tensor<?x16xf32> to tensor<?x2x8xf32>
  %vh = mica.split_heads %v : tensor<?x16xf32> to tensor<?x2x8xf32>
  %qr = mica.rope %qh, %p interleaved theta(1.0e+04) rotary_dim(4) scaling(#mica.linear_scaling<factor = 2.0>) : tensor<?x4x8xf32>, tensor<?xi32>
  %kr = mica.rope %kh, %p interleaved theta(1.0e+04) rotary_dim(4) scaling(#mica.linear_scaling<factor = 2.0>) : tensor<?x2x8xf32>, tensor<?xi32>
  %v1 = mica.kv_append %vh, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %k1 = mica.kv_append %kr, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %qr, %k1, %v1 : tensor<?x4x8xf32>, !cache, !cache
}

// CHECK-LABEL: func @with_further_parts
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x80xf32>
func.func @with_further_parts(%x: tensor<?x80xf32>, %kc: !cache, %vc: !cache, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x4x8xf32>, !cache, !cache, tensor<?x12xf32>, tensor<?x4xf32>) {
  // CHECK-NEXT: %[[PARTS:.*]]:3 = mica.split %[[X]] : tensor<?x80xf32> -> tensor<?x64xf32>, tensor<?x12xf32>, tensor<?x4xf32>
  // CHECK: %[[Q:.*]], %[[K1:.*]], %[[V1:.*]] = mica.qkv_append %[[PARTS]]#0,
  // CHECK-NEXT: return %[[Q]], %[[K1]], %[[V1]], %[[PARTS]]#1, %[[PARTS]]#2
  %q, %k, %v, %g, %h = mica.split %x : tensor<?x80xf32> -> tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x12xf32>, tensor<?x4xf32>
  %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
  %kh = mica.split_heads %k : tensor<?x16xf32> to tensor<?x2x8xf32>
  %vh = mica.split_heads %v : tensor<?x16xf32> to tensor<?x2x8xf32>
  %qr = mica.rope %qh, %p half theta(1.0e+06) : tensor<?x4x8xf32>, tensor<?xi32>
  %kr = mica.rope %kh, %p half theta(1.0e+06) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %vh, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %qr, %k1, %v1, %g, %h : tensor<?x4x8xf32>, !cache, !cache, tensor<?x12xf32>, tensor<?x4xf32>
}

// CHECK-LABEL: func @no_different_thetas
func.func @no_different_thetas(%qkv: tensor<?x64xf32>, %kc: !cache, %vc: !cache, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x4x8xf32>, !cache, !cache) {
  // CHECK-NOT: qkv_append
  %q, %k, %v = mica.split %qkv : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
  %kh = mica.split_heads %k : tensor<?x16xf32> to tensor<?x2x8xf32>
  %vh = mica.split_heads %v : tensor<?x16xf32> to tensor<?x2x8xf32>
  %qr = mica.rope %qh, %p half theta(1.0e+06) : tensor<?x4x8xf32>, tensor<?xi32>
  %kr = mica.rope %kh, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %vh, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %qr, %k1, %v1 : tensor<?x4x8xf32>, !cache, !cache
}

// CHECK-LABEL: func @no_norm_of_queries_alone
func.func @no_norm_of_queries_alone(%qkv: tensor<?x64xf32>, %kc: !cache, %vc: !cache, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>,
    %nq: tensor<8xf32>) -> (tensor<?x4x8xf32>, !cache, !cache) {
  // CHECK-NOT: qkv_append
  %q, %k, %v = mica.split %qkv : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
  %kh = mica.split_heads %k : tensor<?x16xf32> to tensor<?x2x8xf32>
  %vh = mica.split_heads %v : tensor<?x16xf32> to tensor<?x2x8xf32>
  %qn = mica.rmsnorm %qh, %nq eps(1.0e-05) : tensor<?x4x8xf32>, tensor<8xf32> -> tensor<?x4x8xf32>
  %qr = mica.rope %qn, %p half theta(1.0e+04) : tensor<?x4x8xf32>, tensor<?xi32>
  %kr = mica.rope %kh, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %vh, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %qr, %k1, %v1 : tensor<?x4x8xf32>, !cache, !cache
}

// CHECK-LABEL: func @no_different_layers
func.func @no_different_layers(%qkv: tensor<?x64xf32>, %kc: !cache, %vc: !cache, %layer: index, %other: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x4x8xf32>, !cache, !cache) {
  // CHECK-NOT: qkv_append
  %q, %k, %v = mica.split %qkv : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
  %kh = mica.split_heads %k : tensor<?x16xf32> to tensor<?x2x8xf32>
  %vh = mica.split_heads %v : tensor<?x16xf32> to tensor<?x2x8xf32>
  %qr = mica.rope %qh, %p half theta(1.0e+04) : tensor<?x4x8xf32>, tensor<?xi32>
  %kr = mica.rope %kh, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %vh, %vc[%other] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %qr, %k1, %v1 : tensor<?x4x8xf32>, !cache, !cache
}

// The keys are read before the append.
// CHECK-LABEL: func @no_cache_read_before
func.func @no_cache_read_before(%qkv: tensor<?x64xf32>, %kc: !cache, %vc: !cache, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x4x8xf32>, !cache, !cache, tensor<?x?x2x8xf32>) {
  // CHECK-NOT: qkv_append
  %q, %k, %v = mica.split %qkv : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  %old = mica.kv_read %kc[%layer] : !cache -> tensor<?x?x2x8xf32>
  %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
  %kh = mica.split_heads %k : tensor<?x16xf32> to tensor<?x2x8xf32>
  %vh = mica.split_heads %v : tensor<?x16xf32> to tensor<?x2x8xf32>
  %qr = mica.rope %qh, %p half theta(1.0e+04) : tensor<?x4x8xf32>, tensor<?xi32>
  %kr = mica.rope %kh, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %kr, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  %v1 = mica.kv_append %vh, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !cache
  return %qr, %k1, %v1, %old : tensor<?x4x8xf32>, !cache, !cache, tensor<?x?x2x8xf32>
}
