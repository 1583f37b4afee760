// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s
// RUN: sed "s/ window(100), / , /" %s | mica-opt --cpu-lower-to-exec | FileCheck %s --check-prefix=WHOLE

// A cache with a window is a ring of as many blocks as its memory has; blocks of other caches are addressed without a
// division.
!keys = !mica.kv_cache<2 x 2 x 8 x f32 window(100), #mica.kv_layout<keys, block = 64, depth = 1>>
!values = !mica.kv_cache<2 x 2 x 8 x f32 window(100), #mica.kv_layout<values, block = 64, depth = 1>>

func.func private @attend(%x: tensor<?x2x8xf32>, %k: !keys, %v: !values, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x2x8xf32>, !keys, !values) {
  %k1 = mica.kv_append %x, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !keys
  %v1 = mica.kv_append %x, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !values
  %keys = mica.kv_read %k1[%layer] : !keys -> tensor<?x?x2x8xf32>
  %values = mica.kv_read %v1[%layer] : !values -> tensor<?x?x2x8xf32>
  %y = mica.attention %x, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) window(100)
      tiling(<rows = 8, chunk = 512, split = false>) : tensor<?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x2x8xf32>
  return %y, %k1, %v1 : tensor<?x2x8xf32>, !keys, !values
}

// CHECK-LABEL: func.func private @kv_append(
// CHECK: %[[BLOCK:.*]] = arith.divui %{{.*}}, %c64
// CHECK: %[[BLOCKS:.*]] = memref.dim %arg6, %c3
// CHECK-NEXT: arith.remui %[[BLOCK]], %[[BLOCKS]]
// CHECK-LABEL: func.func private @attention(
// CHECK: %[[BLOCKS:.*]] = memref.dim %arg4, %c3
// CHECK-NEXT: arith.remui %[[BLOCK:.*]], %[[BLOCKS]]
// CHECK: %[[BLOCKS:.*]] = memref.dim %arg3, %c3
// CHECK-NEXT: arith.remui %[[BLOCK]], %[[BLOCKS]]

// The number of blocks is not read where rows are appended, and nothing is divided after it was read.
// WHOLE-LABEL: func.func private @kv_append(
// WHOLE: arith.divui %{{.*}}, %c64
// WHOLE-NOT: memref.dim %arg6
// WHOLE-LABEL: func.func private @attention(
// WHOLE: memref.dim %arg{{[34]}}
// WHOLE-NOT: arith.remui
