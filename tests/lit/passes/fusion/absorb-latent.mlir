// RUN: mica-opt %s --mica-absorb-latent --split-input-file --verify-diagnostics | FileCheck %s

// Two calls with different weights; a program has no value cache.
// CHECK-LABEL: module
// CHECK: mica.weight @"0.keys" from [#mica.slice<"0.kv_b", rows 0 to 8 of 32, as_columns>, #mica.slice<"0.kv_b", rows 16 to 24 of 32, as_columns>] stack : tensor<2x16x8xf32>
// CHECK: mica.weight @"0.values" from [#mica.slice<"0.kv_b", rows 8 to 16 of 32>, #mica.slice<"0.kv_b", rows 24 to 32 of 32>] stack : tensor<2x8x16xf32>
// CHECK: mica.weight @"1.keys" from [#mica.slice<"1.k_b", entry 0>, #mica.slice<"1.k_b", entry 1>] stack : tensor<2x16x8xf32>
// CHECK: mica.weight @"1.values" from [#mica.slice<"1.values", rows 0 to 8 of 16>, #mica.slice<"1.values", rows 8 to 16 of 16>] stack : tensor<2x8x16xf32>
// CHECK: func.func private @layer(%[[C:.*]]: tensor<?x16xf32>, %[[QA:.*]]: tensor<?x2x8xf32>, %[[QB:.*]]: tensor<?x2x4xf32>,
// CHECK-SAME: %[[T:[a-z0-9]*]]: tensor<?x1x4xf32>, %[[CACHE:[a-z0-9]*]]: !mica.kv_cache<2 x 1 x 20 x f32 window(7)>, %{{[a-z0-9]*}}: index
// CHECK-SAME: %[[WK:[a-z0-9]*]]: tensor<2x16x8xf32>, %[[WV:[a-z0-9]*]]: tensor<2x8x16xf32>) -> (tensor<?x2x8xf32>, !mica.kv_cache<2 x 1 x 20 x f32 window(7)>)
// CHECK: %[[L:.*]] = mica.split_heads %[[C]] : tensor<?x16xf32> to tensor<?x1x16xf32>
// CHECK: %[[K:.*]] = mica.concat_heads %[[L]], %[[T]]
// CHECK: %[[NEXT:.*]] = mica.kv_append %[[K]], %[[CACHE]]
// CHECK: %[[KEYS:.*]] = mica.kv_read %[[NEXT]]{{.*}} -> tensor<?x?x1x20xf32>
// CHECK: %[[VALUES:.*]] = mica.kv_read %[[NEXT]]{{.*}} -> tensor<?x?x1x16xf32>
// CHECK: %[[QL:.*]] = mica.head_linear %[[QA]], %[[WK]]
// CHECK: %[[Q:.*]] = mica.concat_heads %[[QL]], %[[QB]]
// CHECK: %[[A:.*]] = mica.attention %[[Q]], %[[KEYS]], %[[VALUES]] {{.*}} causal scale(3.000000e-01) window(7) : {{.*}} -> tensor<?x2x16xf32>
// CHECK: %[[Y:.*]] = mica.head_linear %[[A]], %[[WV]]
// CHECK: return %[[Y]], %[[NEXT]]
// CHECK: func.func @main({{.*}}, %[[MAIN:[a-z0-9]*]]: !mica.kv_cache<2 x 1 x 20 x f32 window(7)> {mica.role = "cache"})
// CHECK-SAME: -> (!mica.kv_cache<2 x 1 x 20 x f32 window(7)> {mica.role = "cache"}, tensor<?x2x8xf32> {mica.role = "logits"})
// CHECK: %[[ONE:.*]]:2 = call @layer({{.*}}, %[[MAIN]], {{.*}}) :
// CHECK: %[[TWO:.*]]:2 = call @layer({{.*}}, %[[ONE]]#1, {{.*}}) :
// CHECK: return %[[TWO]]#1, %[[TWO]]#0
!k = !mica.kv_cache<2 x 2 x 12 x f32 window(7)>
!v = !mica.kv_cache<2 x 2 x 8 x f32 window(7)>
module {
  mica.weight @"0.keys" from [#mica.slice<"0.kv_b", rows 0 to 8 of 16>] : tensor<16x16xf32>
  mica.weight @"0.values" from [#mica.slice<"0.kv_b", rows 8 to 16 of 16>] : tensor<16x16xf32>
  mica.weight @"1.keys" from [#mica.slice<"1.k_b", entry 0, transposed>, #mica.slice<"1.k_b", entry 1, transposed>] concat : tensor<16x16xf32>
  mica.weight @"1.values" : tensor<16x16xf32>
  func.func private @layer(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
      %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v) {
    %0 = mica.linear %c, %wk : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
    %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
    %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
    %2 = mica.linear %c, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
    %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
    %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
    %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
    %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
    %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
    %q = mica.concat_heads %qa, %qb : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
    %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3) window(7)
        : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
    return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
  }
  func.func @main(%c: tensor<?x16xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>,
      %kc: !k {mica.role = "cache"}, %vc: !v {mica.role = "cache"})
      -> (!v {mica.role = "cache"}, !k {mica.role = "cache"}, tensor<?x2x8xf32> {mica.role = "logits"}) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %qa = mica.split_heads %c : tensor<?x16xf32> to tensor<?x2x8xf32>
    %wk0 = mica.get_weight @"0.keys" : tensor<16x16xf32>
    %wv0 = mica.get_weight @"0.values" : tensor<16x16xf32>
    %a:3 = call @layer(%c, %qa, %qb, %t, %kc, %vc, %zero, %s, %p, %wk0, %wv0) : (tensor<?x16xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>,
        tensor<?x1x4xf32>, !k, !v, index, tensor<?xi32>, tensor<?xi32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v)
    %wk1 = mica.get_weight @"1.keys" : tensor<16x16xf32>
    %wv1 = mica.get_weight @"1.values" : tensor<16x16xf32>
    %b:3 = call @layer(%c, %a#0, %qb, %t, %a#1, %a#2, %one, %s, %p, %wk1, %wv1) : (tensor<?x16xf32>, tensor<?x2x8xf32>, tensor<?x2x4xf32>,
        tensor<?x1x4xf32>, !k, !v, index, tensor<?xi32>, tensor<?xi32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v)
    return %b#2, %b#1, %b#0 : !v, !k, tensor<?x2x8xf32>
  }
}

// -----

// A latent of 40 elements plus 4 shared ones is larger than two heads of 12 and 8.
// CHECK-LABEL: func.func private @no_larger_latent
// CHECK-NOT: mica.head_linear
// CHECK: return %{{.*}}, %{{.*}}, %{{.*}} :
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @no_larger_latent(%c: tensor<?x40xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
    %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x40xf32>, %wv: tensor<16x40xf32>) -> (tensor<?x2x8xf32>, !k, !v) {
  %0 = mica.linear %c, %wk : tensor<?x40xf32>, tensor<16x40xf32> -> tensor<?x16xf32>
  %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
  %2 = mica.linear %c, %wv : tensor<?x40xf32>, tensor<16x40xf32> -> tensor<?x16xf32>
  %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
  %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
  %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
  %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
  %q = mica.concat_heads %qa, %qb : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
  // expected-remark @below {{the caches hold keys and values of all heads in full: the latent is as large as the keys and values computed from it}}
  %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
      : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
}

// -----

// The part after the keys is different for each head.
// CHECK-LABEL: func.func private @no_part_of_each_head
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @no_part_of_each_head(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x2x4xf32>, %kc: !k, %vc: !v,
    %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v) {
  %0 = mica.linear %c, %wk : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
  %2 = mica.linear %c, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
  %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
  %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
  %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
  %q = mica.concat_heads %qa, %qb : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
  // expected-remark @below {{the caches hold keys and values of all heads in full: each head has keys of its own in the second part}}
  %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
      : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
}

// -----

// Keys and values are computed from different rows, so they have no common latent.
// CHECK-LABEL: func.func private @no_two_latents
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @no_two_latents(%c: tensor<?x16xf32>, %d: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
    %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v) {
  %0 = mica.linear %c, %wk : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
  %2 = mica.linear %d, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
  %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
  %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
  %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
  %q = mica.concat_heads %qa, %qb : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
  // expected-remark @below {{the caches hold keys and values of all heads in full: keys and values are computed from different rows}}
  %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
      : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
}

// -----

// Queries are not a concatenation of two parts.
// CHECK-LABEL: func.func private @no_joined_queries
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @no_joined_queries(%c: tensor<?x16xf32>, %q: tensor<?x2x12xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
    %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v) {
  %0 = mica.linear %c, %wk : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
  %2 = mica.linear %c, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
  %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
  %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
  %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
  // expected-remark @below {{the caches hold keys and values of all heads in full: queries or keys are not concatenated from two parts}}
  %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
      : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
}

// -----

// The first part of queries has another size than that of keys.
// CHECK-LABEL: func.func private @no_other_split
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @no_other_split(%c: tensor<?x16xf32>, %qa: tensor<?x2x4xf32>, %qb: tensor<?x2x8xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
    %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v) {
  %0 = mica.linear %c, %wk : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
  %2 = mica.linear %c, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
  %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
  %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
  %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
  %q = mica.concat_heads %qa, %qb : tensor<?x2x4xf32>, tensor<?x2x8xf32> -> tensor<?x2x12xf32>
  // expected-remark @below {{the caches hold keys and values of all heads in full: queries and keys are concatenated from different parts}}
  %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
      : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
}

// -----

// A matmul has a bias.
// CHECK-LABEL: func.func private @no_bias
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @no_bias(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
    %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %bias: tensor<16xf32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v) {
  %0 = mica.linear %c, %wk bias(%bias : tensor<16xf32>) : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
  %2 = mica.linear %c, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
  %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
  %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
  %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
  %q = mica.concat_heads %qa, %qb : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
  // expected-remark @below {{the caches hold keys and values of all heads in full: a matmul of the latent has a bias, a residual or a kernel}}
  %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
      : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
}

// -----

// The read of the keys is also a result.
// CHECK-LABEL: func.func private @no_read_alone
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @no_read_alone(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
    %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v, tensor<?x?x2x12xf32>) {
  %0 = mica.linear %c, %wk : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
  %2 = mica.linear %c, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
  %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
  %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
  %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
  %q = mica.concat_heads %qa, %qb : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
  // expected-remark @below {{the caches hold keys and values of all heads in full: the keys or values read from a cache have another use}}
  %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
      : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y, %kn, %vn, %kr : tensor<?x2x8xf32>, !k, !v, tensor<?x?x2x12xf32>
}

// -----

// The keys have another read.
// CHECK-LABEL: func.func private @no_second_read
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @no_second_read(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
    %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v, tensor<?x?x2x12xf32>) {
  %0 = mica.linear %c, %wk : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
  %2 = mica.linear %c, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
  %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
  %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
  %again = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
  %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
  %q = mica.concat_heads %qa, %qb : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
  // expected-remark @below {{the caches hold keys and values of all heads in full: a cache has a use other than its attention}}
  %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
      : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y, %kn, %vn, %again : tensor<?x2x8xf32>, !k, !v, tensor<?x?x2x12xf32>
}

// -----

// The callers of a public function are unknown.
// CHECK-LABEL: func.func @no_public_layer
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
func.func @no_public_layer(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
    %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v) {
  %0 = mica.linear %c, %wk : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
  %2 = mica.linear %c, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
  %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
  %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
  %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
  %q = mica.concat_heads %qa, %qb : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
  // expected-remark @below {{the caches hold keys and values of all heads in full: its function is called from elsewhere}}
  %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
      : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
}

// -----

// Values are appended at other positions.
// CHECK-LABEL: func.func private @no_other_place
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @no_other_place(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
    %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %p2: tensor<?xi32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v) {
  %0 = mica.linear %c, %wk : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
  %2 = mica.linear %c, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
  %vn = mica.kv_append %v, %vc[%layer] at(%s, %p2 : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
  %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
  %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
  %q = mica.concat_heads %qa, %qb : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
  // expected-remark @below {{the caches hold keys and values of all heads in full: keys and values are appended to different places}}
  %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
      : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
}

// -----

// The values are also a result.
// CHECK-LABEL: func.func private @no_value_of_two_uses
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @no_value_of_two_uses(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
    %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v, tensor<?x16xf32>) {
  %0 = mica.linear %c, %wk : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
  %2 = mica.linear %c, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
  %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
  %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
  %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
  %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
  %q = mica.concat_heads %qa, %qb : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
  // expected-remark @below {{the caches hold keys and values of all heads in full: keys or values are not the result of a matmul alone}}
  %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
      : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y, %kn, %vn, %2 : tensor<?x2x8xf32>, !k, !v, tensor<?x16xf32>
}
