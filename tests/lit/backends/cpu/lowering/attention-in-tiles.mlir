// Tasks of several rows use AMX tiles if queries and both caches are bf16 and the head size is a multiple of 32 elements.
// A single row uses vectors, in the same order of summation; other head sizes are computed as without AMX.
// RUN: mica-opt %s --cpu-set-target=cpu=sapphirerapids --cpu-lower-to-exec --canonicalize | FileCheck %s

!keys = !mica.kv_cache<2 x 2 x 64 x bf16, #mica.kv_layout<keys, block = 64, depth = 2>>
!values = !mica.kv_cache<2 x 2 x 64 x bf16, #mica.kv_layout<values, block = 64, depth = 2>>

// 12 pairs of a row and a query head are padded to 16.
// CHECK-LABEL: func.func private @attention(
// CHECK-DAG: %[[QUERIES:.*]] = memref.alloca() {{.*}} : memref<16x64xbf16>
// CHECK-DAG: %[[WEIGHTS:.*]] = memref.alloca() {{.*}} : memref<16x64xbf16>
// CHECK-DAG: %[[SCORES:.*]] = memref.alloca() {{.*}} : memref<16x64xf32>
// CHECK-DAG: %[[CORRECTIONS:.*]] = memref.alloca() {{.*}} : memref<16xf32>
// Scores, from zero: two steps of 16 pairs, two tiles by two, then the remaining rows by four tiles.
// CHECK-COUNT-4: amx.tile_zero
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c2{{.*}} iter_args
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store %[[SCORES]]
// CHECK-COUNT-4: amx.tile_zero
// CHECK-COUNT-4: amx.tile_store %[[SCORES]]
// The maximum score of each pair; corrections for 16 pairs at once; softmax weights.
// CHECK: vector.reduction
// CHECK: memref.store %{{.*}}, %[[CORRECTIONS]]
// CHECK: vector.load %[[CORRECTIONS]]
// CHECK: vector.store %{{.*}}, %[[CORRECTIONS]]
// CHECK: vector.store %{{.*}}, %{{.*}} : memref<16x64xbf16>, vector<16xbf16>
// Softmax weights times values, added to the accumulators, for the steps that at least one row attends to.
// CHECK-COUNT-4: amx.tile_load %{{.*}} : memref<16x96xf32> into !amx.tile<16x16xf32>
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %{{[0-9]+}} step {{.*}} iter_args
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store %{{.*}} : memref<16x96xf32>
func.func private @several_rows(%q: tensor<?x6x64xbf16>, %k: !keys, %v: !values, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> tensor<?x6x64xbf16> {
  %keys = mica.kv_read %k[%layer] : !keys -> tensor<?x?x2x64xbf16>
  %values = mica.kv_read %v[%layer] : !values -> tensor<?x?x2x64xbf16>
  %y = mica.attention %q, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5)
      tiling(<rows = 4, chunk = 512, split = false>) : tensor<?x6x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16> -> tensor<?x6x64xbf16>
  return %y : tensor<?x6x64xbf16>
}

// The first and second elements of 16 pairs are summed separately, from zero; then both sums are added.
// CHECK-LABEL: func.func private @attention_0(
// CHECK-NOT: amx
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c32{{.*}} step %c16{{.*}} iter_args
// CHECK: %[[APART:.*]]:12 = scf.for {{.*}} iter_args({{.*}} = %cst{{.*}})
// CHECK-COUNT-12: vector.fma
// CHECK: %[[BOTH:.*]] = arith.addf %[[APART]]#0, %[[APART]]#1
// CHECK: arith.addf %{{.*}}, %[[BOTH]]
// CHECK-NOT: amx
func.func private @one_row(%q: tensor<?x6x64xbf16>, %k: !keys, %v: !values, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> tensor<?x6x64xbf16> {
  %keys = mica.kv_read %k[%layer] : !keys -> tensor<?x?x2x64xbf16>
  %values = mica.kv_read %v[%layer] : !values -> tensor<?x?x2x64xbf16>
  %y = mica.attention %q, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5)
      tiling(<rows = 1, chunk = 512, split = false>) : tensor<?x6x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16> -> tensor<?x6x64xbf16>
  return %y : tensor<?x6x64xbf16>
}

!narrowKeys = !mica.kv_cache<2 x 2 x 48 x bf16, #mica.kv_layout<keys, block = 64, depth = 2>>
!narrowValues = !mica.kv_cache<2 x 2 x 48 x bf16, #mica.kv_layout<values, block = 64, depth = 2>>

// CHECK-LABEL: func.func private @attention_1(
// CHECK-NOT: amx
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c24{{.*}} step %c1{{.*}} iter_args
// CHECK-NOT: amx
func.func private @narrow_heads(%q: tensor<?x6x48xbf16>, %k: !narrowKeys, %v: !narrowValues, %layer: index, %s: tensor<?xi32>,
    %p: tensor<?xi32>) -> tensor<?x6x48xbf16> {
  %keys = mica.kv_read %k[%layer] : !narrowKeys -> tensor<?x?x2x48xbf16>
  %values = mica.kv_read %v[%layer] : !narrowValues -> tensor<?x?x2x48xbf16>
  %y = mica.attention %q, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5)
      tiling(<rows = 4, chunk = 512, split = false>) : tensor<?x6x48xbf16>, tensor<?x?x2x48xbf16>, tensor<?x?x2x48xbf16> -> tensor<?x6x48xbf16>
  return %y : tensor<?x6x48xbf16>
}
