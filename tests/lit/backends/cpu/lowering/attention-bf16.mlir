// Queries and softmax weights are multiplied by bf16 values as pairs if the target has bf16 dot products, otherwise as f32.
// RUN: mica-opt %s --cpu-set-target=cpu=znver4 --cpu-lower-to-exec | FileCheck %s --check-prefix=PAIRS
// RUN: mica-opt %s --cpu-set-target=cpu=cooperlake --cpu-lower-to-exec | FileCheck %s --check-prefix=SINGLE --implicit-check-not=x86vector.avx512.dot
// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s --check-prefix=SINGLE --implicit-check-not=x86vector.avx512.dot

!keys = !mica.kv_cache<2 x 2 x 8 x bf16, #mica.kv_layout<keys, block = 64, depth = 2>>
!values = !mica.kv_cache<2 x 2 x 8 x bf16, #mica.kv_layout<values, block = 64, depth = 2>>

// PAIRS-LABEL: func.func private @attention(
// PAIRS: memref.alloca() {{.*}} : memref<8x16xbf16>
// PAIRS: memref.alloca() {{.*}} : memref<4x64xbf16>
// PAIRS: x86vector.avx512.dot
// SINGLE-LABEL: func.func private @attention(
// SINGLE: memref.alloca() {{.*}} : memref<8x16xf32>
// SINGLE: memref.alloca() {{.*}} : memref<4x64xf32>
// SINGLE: vector.fma
func.func private @attend(%q: tensor<?x4x8xbf16>, %k: !keys, %v: !values, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> tensor<?x4x8xbf16> {
  %keys = mica.kv_read %k[%layer] : !keys -> tensor<?x?x2x8xbf16>
  %values = mica.kv_read %v[%layer] : !values -> tensor<?x?x2x8xbf16>
  %y = mica.attention %q, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5)
      tiling(<rows = 4, chunk = 512, split = false>) : tensor<?x4x8xbf16>, tensor<?x?x2x8xbf16>, tensor<?x?x2x8xbf16> -> tensor<?x4x8xbf16>
  return %y : tensor<?x4x8xbf16>
}
