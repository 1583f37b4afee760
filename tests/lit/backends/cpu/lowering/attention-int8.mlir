// An int8 cache is bytes: a block of 64 positions of 16 elements, then 64 f32 scales.
// RUN: mica-opt %s --cpu-set-target=cpu=znver4 --cpu-lower-to-exec | FileCheck %s --check-prefixes=CHECK,BYTES --implicit-check-not=mica.kv_read
// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s --check-prefixes=CHECK,FLOATS --implicit-check-not=mica.kv_read

!keys = !mica.kv_cache<2 x 2 x 8 x !mica.int8, #mica.kv_layout<keys, block = 64, depth = 4>>
!values = !mica.kv_cache<2 x 2 x 8 x !mica.int8, #mica.kv_layout<values, block = 64, depth = 4>>

// CHECK-LABEL: func.func private @attend
// CHECK-SAME: %arg1: tensor<2x?x2x?x1280xi8>, %arg2: tensor<2x?x2x?x1280xi8>
// CHECK: %[[K:.*]] = exec.launch @kv_append{{.*}} outs(%arg1
// CHECK: %[[V:.*]] = exec.launch @kv_append{{.*}} outs(%arg2
// CHECK: exec.launch @attention {{.*}} ins(%{{.*}}, %[[K]], %[[V]], %arg3
func.func private @attend(%x: tensor<?x2x8xf32>, %k: !keys, %v: !values, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x2x8xf32>, !keys, !values) {
  %k1 = mica.kv_append %x, %k[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !keys
  %v1 = mica.kv_append %x, %v[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !values
  %keys = mica.kv_read %k1[%layer] : !keys -> tensor<?x?x2x8x!mica.int8>
  %values = mica.kv_read %v1[%layer] : !values -> tensor<?x?x2x8x!mica.int8>
  %y = mica.attention %x, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5)
      tiling(<rows = 8, chunk = 512, split = false>) : tensor<?x2x8xf32>, tensor<?x?x2x8x!mica.int8>, tensor<?x?x2x8x!mica.int8> -> tensor<?x2x8xf32>
  return %y, %k1, %v1 : tensor<?x2x8xf32>, !keys, !values
}

// A head and its scale. The maximum magnitude is computed on the bits, where NaN is the largest value.
// CHECK: func.func private @kv_append({{.*}} #exec.cost<row_cache_bytes = 24>
// CHECK: vector.reduction <maxsi>
// CHECK: math.roundeven
// CHECK: arith.trunci %{{.*}} : vector<16xi32> to vector<16xi8>
// CHECK: memref.store %{{.*}} : memref<2x?x2x?x1280xi8>
// CHECK: arith.addi %c1024
// CHECK: vector.store %{{.*}} : memref<2x?x2x?x1280xi8>, vector<4xi8>

// With int8 dot products, queries and softmax weights are quantized to two bytes: here 8 rows of 16 elements, and weights of
// 64 positions for 4 of them, each with a scale. Keys get an offset, because one operand of the instruction is unsigned.
// BYTES-LABEL: func.func private @attention(
// BYTES-SAME: #exec.cost<position_cache_bytes = 48, pair_flops = 64>
// BYTES-DAG: memref.alloca() {{.*}} : memref<8x32xi8>
// BYTES-DAG: memref.alloca() {{.*}} : memref<8xf32>
// BYTES-DAG: memref.alloca() {{.*}} : memref<8x2xi32>
// BYTES-DAG: memref.alloca() {{.*}} : memref<4x128xi8>
// BYTES-DAG: memref.alloca() {{.*}} : memref<4xf32>
// BYTES: vector.load %{{.*}} : memref<?xi8>, vector<64xi8>
// BYTES: %[[SHIFTED:.*]] = arith.xori
// BYTES-NEXT: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %[[SHIFTED]], %{{.*}})
// BYTES: vector.bitcast %{{.*}} : vector<64xi8> to vector<16xf32>
// BYTES-NEXT: arith.mulf
// Softmax weights are not negative.
// BYTES: arith.shrui
// BYTES-NOT: arith.xori
// BYTES: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"

// On other targets both stay f32, and integers are converted when they are read.
// FLOATS-LABEL: func.func private @attention(
// FLOATS-DAG: memref.alloca() {{.*}} : memref<8x16xf32>
// FLOATS-DAG: memref.alloca() {{.*}} : memref<4x64xf32>
// FLOATS: vector.load %{{.*}} : memref<?xi8>, vector<64xi8>
// FLOATS: arith.shrsi
// FLOATS: arith.sitofp %{{.*}} : vector<16xi32> to vector<16xf32>
// FLOATS: vector.fma
// FLOATS: vector.bitcast %{{.*}} : vector<64xi8> to vector<16xf32>
// FLOATS-NEXT: arith.mulf
