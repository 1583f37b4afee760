// RUN: mica-opt %s --mica-absorb-latent --split-input-file --verify-diagnostics | FileCheck %s

// Latents that are not absorbed because of ops around the attention. absorb-latent.mlir has the cases within it.

// Keys are not those of the append.
// CHECK-LABEL: module @no_append
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
module @no_append {
  func.func private @layer(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
      %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %other: tensor<?x?x2x12xf32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v) {
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
    // expected-remark @below {{the caches hold keys and values of all heads in full: keys or values are not read from an append}}
    %y = mica.attention %q, %other, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
        : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
    return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
  }
}

// -----

// The cache has another append.
// CHECK-LABEL: module @no_argument
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
module @no_argument {
  func.func private @layer(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
      %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v) {
    %0 = mica.linear %c, %wk : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
    %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
    %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
    %2 = mica.linear %c, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
    %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
    %first = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
    %kn = mica.kv_append %k, %first[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
    %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
    %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
    %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
    %q = mica.concat_heads %qa, %qb : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
    // expected-remark @below {{the caches hold keys and values of all heads in full: a cache is not an argument, or has a use other than its append}}
    %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
        : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
    return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
  }
}

// -----

// The matrix is also a result.
// CHECK-LABEL: module @no_matrix_alone
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
module @no_matrix_alone {
  func.func private @layer(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
      %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v, tensor<16x16xf32>) {
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
    // expected-remark @below {{the caches hold keys and values of all heads in full: a matrix is not an argument of the function, or has another use}}
    %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
        : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
    return %y, %kn, %vn, %wk : tensor<?x2x8xf32>, !k, !v, tensor<16x16xf32>
  }
}

// -----

// Two layers share the matrix.
// CHECK-LABEL: module @no_weight_alone
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
module @no_weight_alone {
  mica.weight @keys : tensor<16x16xf32>
  mica.weight @values : tensor<16x16xf32>
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
    // expected-remark @below {{the caches hold keys and values of all heads in full: a matrix is not a weight, or has another use}}
    %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
        : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
    return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
  }
  func.func @main(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>,
      %kc: !k, %vc: !v) -> (!k, !v) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %wk = mica.get_weight @keys : tensor<16x16xf32>
    %wv = mica.get_weight @values : tensor<16x16xf32>
    %r0:3 = call @layer(%c, %qa, %qb, %t, %kc, %vc, %zero, %s, %p, %wk, %wv) : (tensor<?x16xf32>, tensor<?x2x8xf32>,
        tensor<?x2x4xf32>, tensor<?x1x4xf32>, !k, !v, index, tensor<?xi32>, tensor<?xi32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v)
    %r1:3 = call @layer(%c, %qa, %qb, %t, %r0#1, %r0#2, %one, %s, %p, %wk, %wv) : (tensor<?x16xf32>, tensor<?x2x8xf32>,
        tensor<?x2x4xf32>, tensor<?x1x4xf32>, !k, !v, index, tensor<?xi32>, tensor<?xi32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v)
    return %r1#1, %r1#2 : !k, !v
  }
}

// -----

// A head's rows are from two tensors.
// CHECK-LABEL: module @no_rows_of_a_head
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
module @no_rows_of_a_head {
  mica.weight @keys from ["a", "b", "c", "d"] concat : tensor<16x16xf32>
  mica.weight @values : tensor<16x16xf32>
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
    // expected-remark @below {{the caches hold keys and values of all heads in full: the rows of a head are not contiguous in a tensor}}
    %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
        : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
    return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
  }
  func.func @main(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>,
      %kc: !k, %vc: !v) -> (!k, !v) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %wk = mica.get_weight @keys : tensor<16x16xf32>
    %wv = mica.get_weight @values : tensor<16x16xf32>
    %r0:3 = call @layer(%c, %qa, %qb, %t, %kc, %vc, %zero, %s, %p, %wk, %wv) : (tensor<?x16xf32>, tensor<?x2x8xf32>,
        tensor<?x2x4xf32>, tensor<?x1x4xf32>, !k, !v, index, tensor<?xi32>, tensor<?xi32>, tensor<16x16xf32>, tensor<16x16xf32>) -> (tensor<?x2x8xf32>, !k, !v)
    return %r0#1, %r0#2 : !k, !v
  }
}

// -----

// Two query heads share a key head.
// CHECK-LABEL: module @no_shared_heads
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
module @no_shared_heads {
  func.func private @layer(%c: tensor<?x16xf32>, %qa: tensor<?x4x8xf32>, %qb: tensor<?x4x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
      %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x16xf32>, %wv: tensor<16x16xf32>) -> (tensor<?x4x8xf32>, !k, !v) {
    %0 = mica.linear %c, %wk : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
    %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
    %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
    %2 = mica.linear %c, %wv : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
    %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
    %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
    %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
    %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
    %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
    %q = mica.concat_heads %qa, %qb : tensor<?x4x8xf32>, tensor<?x4x4xf32> -> tensor<?x4x12xf32>
    // expected-remark @below {{the caches hold keys and values of all heads in full: heads are shared}}
    %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
        : tensor<?x4x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
    return %y, %kn, %vn : tensor<?x4x8xf32>, !k, !v
  }
}

// -----

// Another layer has smaller latents.
// CHECK-LABEL: module @no_other_size
// CHECK-NOT: mica.head_linear
!k = !mica.kv_cache<2 x 2 x 12 x f32>
!v = !mica.kv_cache<2 x 2 x 8 x f32>
module @no_other_size {
  func.func private @first(%c: tensor<?x16xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
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
    %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
        : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
    return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
  }
  func.func private @second(%c: tensor<?x12xf32>, %qa: tensor<?x2x8xf32>, %qb: tensor<?x2x4xf32>, %t: tensor<?x1x4xf32>, %kc: !k, %vc: !v,
      %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<16x12xf32>, %wv: tensor<16x12xf32>) -> (tensor<?x2x8xf32>, !k, !v) {
    %0 = mica.linear %c, %wk : tensor<?x12xf32>, tensor<16x12xf32> -> tensor<?x16xf32>
    %1 = mica.split_heads %0 : tensor<?x16xf32> to tensor<?x2x8xf32>
    %k = mica.concat_heads %1, %t : tensor<?x2x8xf32>, tensor<?x1x4xf32> -> tensor<?x2x12xf32>
    %2 = mica.linear %c, %wv : tensor<?x12xf32>, tensor<16x12xf32> -> tensor<?x16xf32>
    %v = mica.split_heads %2 : tensor<?x16xf32> to tensor<?x2x8xf32>
    %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x12xf32>, !k
    %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x2x12xf32>
    %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !v
    %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x2x8xf32>
    %q = mica.concat_heads %qa, %qb : tensor<?x2x8xf32>, tensor<?x2x4xf32> -> tensor<?x2x12xf32>
    // expected-remark @below {{the caches hold keys and values of all heads in full: latents of layers have different sizes}}
    %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
        : tensor<?x2x12xf32>, tensor<?x?x2x12xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
    return %y, %kn, %vn : tensor<?x2x8xf32>, !k, !v
  }
}
