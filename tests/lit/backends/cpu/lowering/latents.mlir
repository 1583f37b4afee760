// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s

#heads = #mica.packed<columns = 64, depth = 1, k_block = 16>
!keys = !mica.kv_cache<2 x 1 x 40 x f32, #mica.kv_layout<keys, block = 64, depth = 1>>

// Both reads are of one cache, whose blocks the kernel transposes; 4 of the 8 query heads make a task.
// CHECK-LABEL: func.func private @attend
// CHECK-SAME: %[[K:arg[0-9]]]: tensor<2x?x1x?x3072xf32>
// CHECK: %[[TILES:.*]] = arith.divui %{{.*}}, %c4
// CHECK: %[[TASKS:.*]] = arith.muli %[[TILES]], %c2
// CHECK: exec.launch @attention tasks(%[[TASKS]]) ins(%{{.*}}, %[[K]], %[[K]], %arg2
func.func private @attend(%q: tensor<?x8x40xf32>, %k: !keys, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x8x32xf32> {
  %keys = mica.kv_read %k[%layer] : !keys -> tensor<?x?x1x40xf32>
  %values = mica.kv_read %k[%layer] : !keys -> tensor<?x?x1x32xf32>
  %y = mica.attention %q, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5)
      tiling(<rows = 4, chunk = 512, split = false, heads = 4>) : tensor<?x8x40xf32>, tensor<?x?x1x40xf32>, tensor<?x?x1x32xf32> -> tensor<?x8x32xf32>
  return %y : tensor<?x8x32xf32>
}

// A task is a head and a block of 64 columns.
// CHECK-LABEL: func.func private @products
// CHECK: %[[TASKS:.*]] = arith.constant 16 : index
// CHECK: exec.launch @head_linear_100x40 tasks(%[[TASKS]])
func.func private @products(%x: tensor<?x8x40xf32>, %w: tensor<8x100x40xf32, #heads>) -> tensor<?x8x100xf32> {
  %y = mica.head_linear %x, %w : tensor<?x8x40xf32>, tensor<8x100x40xf32, #heads> -> tensor<?x8x100xf32>
  return %y : tensor<?x8x100xf32>
}

// CHECK: func.func private @attention(
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<2048xf32>
// CHECK-COUNT-64: vector.shuffle
// CHECK: func.func private @head_linear_100x40(
