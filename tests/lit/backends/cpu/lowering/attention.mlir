// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s --implicit-check-not=mica.kv_read "--implicit-check-not=memref.alloc("

!keys = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<keys, block = 64, depth = 1>>
!values = !mica.kv_cache<2 x 2 x 8 x f32, #mica.kv_layout<values, block = 64, depth = 1>>

// The rope frequencies are a constant.
// CHECK: memref.global "private" constant @inv_freq : memref<4xf32> = dense<[1.000000e+00, 1.000000e-01, 0.00999999977, 1.000000e-03]>

// A cache is a tensor [layers, sequences, heads, blocks, 64 positions of 16 elements]; kv_read is the whole tensor.
// CHECK-LABEL: func.func private @attend
// CHECK-SAME: %arg1: tensor<2x?x2x?x1024xf32>
// CHECK: %[[K:.*]] = exec.launch @kv_append{{.*}} outs(%arg1
// CHECK: %[[V:.*]] = exec.launch @kv_append{{.*}} outs(%arg2
// A task is a key/value head and 8 rows.
// CHECK: %[[UP:.*]] = arith.addi %{{.*}}, %c7
// CHECK: %[[TILES:.*]] = arith.divui %[[UP]], %c8
// CHECK: %[[TASKS:.*]] = arith.muli %[[TILES]], %c2
// CHECK: exec.launch @attention tasks(%[[TASKS]]) ins(%{{.*}}, %[[K]], %[[V]], %arg3
func.func private @attend(%x: tensor<?x2x8xf32>, %k: !keys, %v: !values, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x2x8xf32>, !keys, !values) {
  %xr = mica.rope %x, %p half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
  %k1 = mica.kv_append %xr, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !keys
  %v1 = mica.kv_append %x, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !values
  %keys = mica.kv_read %k1[%layer] : !keys -> tensor<?x?x2x8xf32>
  %values = mica.kv_read %v1[%layer] : !values -> tensor<?x?x2x8xf32>
  %y = mica.attention %xr, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) window(8) softcap(30.0)
      tiling(<rows = 8, chunk = 512, split = false>) : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
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

// Single rows: a task is a key/value head, a chunk of positions and a row. Tasks that combine the chunks are launched only if a row
// attends to several chunks.
// CHECK-LABEL: func.func private @attend_split
// CHECK-SAME: %[[P:arg[0-9]]]: tensor<?xi32>) ->
// CHECK: %[[MAX:.*]] = scf.for {{.*}} -> (index)
// CHECK:   tensor.extract %[[P]]
// CHECK:   arith.maxui
// CHECK: %[[PAIRS:.*]] = arith.muli %{{.*}}, %[[MAX]]
// CHECK: %[[TASKS:.*]] = arith.muli %[[PAIRS]], %c2
// CHECK: %[[PARTS:.*]] = tensor.empty() : tensor<4x16x4x48xf32>
// CHECK: %[[MADE:.*]]:2 = exec.launch @attention_chunks tasks(%[[TASKS]]) {{.*}} outs(%[[PARTS]], %{{.*}} :
// CHECK: %[[SPLIT:.*]] = arith.cmpi ugt, %[[MAX]], %c1
// CHECK: %[[COMBINE:.*]] = arith.select %[[SPLIT]], %{{.*}}, %c0
// CHECK: exec.launch @attention_combine tasks(%[[COMBINE]]) ins(%[[P]], %[[MADE]]#0 : {{.*}}) outs(%[[MADE]]#1 :
func.func private @attend_split(%q: tensor<?x4x8xf32>, %k: !keys, %v: !values, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> tensor<?x4x8xf32> attributes {mica.max_rows = 4 : i64} {
  %keys = mica.kv_read %k[%layer] : !keys -> tensor<?x?x2x8xf32>
  %values = mica.kv_read %v[%layer] : !values -> tensor<?x?x2x8xf32>
  %y = mica.attention %q, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5)
      tiling(<rows = 1, chunk = 512, split = true>) : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
  return %y : tensor<?x4x8xf32>
}

// The window may begin within a 17th chunk; without a limit on rows the partial results are memory per row.
// CHECK-LABEL: func.func private @attend_split_window
// CHECK: tensor.empty(%{{.*}}) : tensor<?x17x4x48xf32>
func.func private @attend_split_window(%q: tensor<?x4x8xf32>, %k: !keys, %v: !values, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> tensor<?x4x8xf32> {
  %keys = mica.kv_read %k[%layer] : !keys -> tensor<?x?x2x8xf32>
  %values = mica.kv_read %v[%layer] : !values -> tensor<?x?x2x8xf32>
  %y = mica.attention %q, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) window(100)
      tiling(<rows = 1, chunk = 512, split = true>) : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
  return %y : tensor<?x4x8xf32>
}

// CHECK: func.func private @kv_append({{.*}} #exec.cost<row_cache_bytes = 64>
// The scores of a block stay in registers and on the stack: no buffer depends on the sequence length.
// CHECK-LABEL: func.func private @attention(
// CHECK-SAME: #exec.cost<position_cache_bytes = 128, pair_flops = 64, window = 8>
// The positions of 8 rows, states [8 values padded to 16, 16 sums, maximum] of a chunk, queries, weights of a block for 4 rows, all states.
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<8xi32>
// CHECK-NEXT: memref.alloca() {alignment = 64 : i64} : memref<8x48xf32>
// CHECK-NEXT: memref.alloca() {alignment = 64 : i64} : memref<8x16xf32>
// CHECK-NEXT: memref.alloca() {alignment = 64 : i64} : memref<4x64xf32>
// CHECK-NEXT: memref.alloca() {alignment = 64 : i64} : memref<8x48xf32>
// Loops over runs of rows of one sequence, chunks, blocks, and tiles of four pairs.
// CHECK: scf.while
// CHECK: math.tanh
// Only blocks that a row attends to in part are masked.
// CHECK: scf.if {{.*}} -> (vector<16xf32>
// CHECK: vector.create_mask
// CHECK: func.func private @qkv_append({{.*}} #exec.cost<row_cache_bytes = 128>
