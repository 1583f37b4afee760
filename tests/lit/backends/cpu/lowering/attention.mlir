// RUN: mica-opt %s --mica-lower-to-exec | FileCheck %s

!keys = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<keys, block = 64, depth = 1>>
!values = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<values, block = 64, depth = 1>>

// The frequencies of rope are a constant table.
// CHECK: memref.global "private" constant @inv_freq : memref<4xf32> = dense<[1.000000e+00, 1.000000e-01, 0.00999999977, 1.000000e-03]>

// A cache is a tensor [layers, sequences, heads, blocks, 64 positions of 16 elements], and is read as a whole.
// CHECK-LABEL: func.func private @attend
// CHECK-SAME: %arg1: tensor<2x?x2x?x1024xf32>
// CHECK: %[[K:.*]] = exec.launch @kv_append{{.*}} outs(%arg1
// CHECK: %[[V:.*]] = exec.launch @kv_append{{.*}} outs(%arg2
// CHECK: exec.launch @attention tasks(%{{.*}}) ins(%{{.*}}, %[[K]], %[[V]], %arg3
// CHECK-NOT: mica.kv_read
func.func private @attend(%x: tensor<?x2x8xf32>, %k: !keys, %v: !values, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x2x8xf32>, !keys, !values) {
  %xr = mica.rope %x, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %xr, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !keys
  %v1 = mica.kv_append %x, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !values
  %keys = mica.kv_read %k1[%layer] : !keys -> tensor<?x?x2x8xf32>
  %values = mica.kv_read %v1[%layer] : !values -> tensor<?x?x2x8xf32>
  %y = mica.attention %xr, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) window(8) softcap(30.0)
      : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y, %k1, %v1 : tensor<?x2x8xf32>, !keys, !values
}

// CHECK-LABEL: func.func private @fused
// CHECK: exec.launch @rope_table
// CHECK: exec.launch @qkv_append{{.*}} outs(%{{.*}}, %arg1, %arg2
func.func private @fused(%x: tensor<?x64xf32>, %k: !keys, %v: !values, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %n: tensor<8xf32>)
    -> (tensor<?x4x8xf32>, !keys, !values) {
  %table = mica.rope_table %p rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
  %q, %k1, %v1 = mica.qkv_append %x, %table, %k, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>)
      norms(%n, %n : tensor<8xf32>, tensor<8xf32>) interleaved eps(1.0e-06) : tensor<?x64xf32>, tensor<?x2x4xf32>, !keys, !values -> tensor<?x4x8xf32>
  return %q, %k1, %v1 : tensor<?x4x8xf32>, !keys, !values
}

// CHECK: func.func private @kv_append({{.*}} #exec.cost<row_cache_bytes = 64>
// The scores of a block never leave the registers and the stack: no buffer depends on the length of the sequence.
// CHECK-LABEL: func.func private @attention(
// CHECK-SAME: #exec.cost<position_cache_bytes = 128, pair_flops = 64, window = 8>
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<1x64xf32>
// CHECK-NOT: memref.alloc(
// CHECK: math.tanh
// CHECK: math.exp
// CHECK: func.func private @qkv_append({{.*}} #exec.cost<row_cache_bytes = 128>
