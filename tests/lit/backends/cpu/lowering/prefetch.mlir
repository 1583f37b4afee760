// On targets where this is faster, the kernel that reads a weight or a cache from memory, for the first rows and columns of a block,
// prefetches lines of the next 32 KiB, alternating between 8 pages. Later reads find them in the cache.
// RUN: mica-opt %s --cpu-set-target=cpu=skylake-avx512 --cpu-lower-to-exec --canonicalize | FileCheck %s --check-prefixes=CHECK,VECTORS
// RUN: mica-opt %s --cpu-set-target=cpu=sapphirerapids --cpu-lower-to-exec --canonicalize \
// RUN:   | FileCheck %s --check-prefixes=CHECK,TILES
// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s --check-prefix=WITHOUT \
// RUN:   "--implicit-check-not=arith.remui %{{.*}}, %c{{8192|16384|32768}}"
// WITHOUT: func.func private @linear_192x64
// RUN: mica-opt %s --cpu-set-target=cpu=znver3 --cpu-lower-to-exec --canonicalize | FileCheck %s --check-prefix=BLOCKS
// RUN: mica-opt %s --cpu-set-target=cpu=x86-64-v3 --cpu-lower-to-exec --canonicalize | FileCheck %s --check-prefix=NONE

#bf16 = #mica.packed<columns = 64, depth = 2, k_block = 32>
#bytes = #mica.packed<columns = 64, depth = 4, k_block = 64>
!rows = !mica.int_rows<bits = 16, group = 32>
!keys = !mica.kv_cache<2 x 2 x 64 x bf16, #mica.kv_layout<keys, block = 64, depth = 2>>
!values = !mica.kv_cache<2 x 2 x 64 x bf16, #mica.kv_layout<values, block = 64, depth = 2>>
// PrefetchTest checks which lines are prefetched; this test, which kernels prefetch and how often:
// the four lines of each unit of 256 bytes together.
// CHECK-LABEL: func.func private @linear_192x64
// VECTORS: scf.for %[[ROW:.*]] = %c0 to %{{.*}} step
// VECTORS: %[[FIRST:.*]] = arith.cmpi eq, %[[ROW]], %c0
// VECTORS: {{^}}[[INDENT: +]]scf.if %[[FIRST]] {
// VECTORS-NOT: {{^}}[[INDENT]]}
// VECTORS: memref.prefetch {{.*}}, read, locality<2>, data
// VECTORS-NOT: {{^}}[[INDENT]]}
// VECTORS: memref.prefetch
// VECTORS-NOT: {{^}}[[INDENT]]}
// VECTORS: memref.prefetch
// VECTORS-NOT: {{^}}[[INDENT]]}
// VECTORS: memref.prefetch
// VECTORS-NEXT: {{^}}[[INDENT]]}{{$}}
// More rows than a tile has prefetch the next step instead (matmul-k-steps.mlir).
// VECTORS: scf.for %{{.*}} = %[[ROW]] to
// VECTORS-NOT: scf.if
// VECTORS-COUNT-4: memref.prefetch
// A step of tiles has 16 pairs, which are 16 units: half of them are prefetched before each of two tiles.
// TILES: scf.for %[[ROW:.*]] = %c0 to %{{.*}} step
// TILES: %[[FIRST:.*]] = arith.cmpi eq, %[[ROW]], %c0
// TILES: {{^}}[[INDENT: +]]scf.if %[[FIRST]] {
// TILES-COUNT-4: memref.prefetch
// TILES-NEXT: {{^}}[[INDENT]]}{{$}}
// Rows that are copied in pieces are prefetched one by one.
// TILES: memref.prefetch %arg2
// TILES: scf.for %[[COLUMN:.*]] = %c0 to %c64 step %c32
// TILES: scf.for %[[TILE:.*]] = %c0 to
// TILES: %[[OR:.*]] = arith.ori %[[TILE]], %[[COLUMN]]
// TILES: %[[ZERO:.*]] = arith.cmpi eq, %[[OR]], %c0
// TILES: %[[BRINGS:.*]] = arith.andi %[[FIRST]], %[[ZERO]]
// TILES: scf.if %[[BRINGS]] {
// TILES-NEXT: {{^}}[[INDENT: +]]scf.for %{{.*}} = %c0 to %c1024 step %c128
// TILES-COUNT-4: memref.prefetch
// TILES-NEXT: {{^}}[[INDENT]]}{{$}}
// TILES-COUNT-2: amx.tile_mulf
// TILES: scf.if %[[BRINGS]] {
// TILES-NEXT: {{^}}[[INDENT]]scf.for %{{.*}} = %c0 to %c1024 step %c128
// TILES-COUNT-4: memref.prefetch
// TILES-NEXT: {{^}}[[INDENT]]}{{$}}
// TILES-COUNT-2: amx.tile_mulf
func.func private @pairs(%x: tensor<?x64xbf16>, %w: tensor<192x64xbf16, #bf16>) -> tensor<?x192xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x64xbf16>, tensor<192x64xbf16, #bf16> -> tensor<?x192xf32>
  return %y : tensor<?x192xf32>
}
// Blocks of 1152 bytes do not begin at a unit boundary: each prefetches the units that begin within it.
// CHECK-LABEL: func.func private @linear_172x288
// CHECK: scf.if
// CHECK: arith.addi %{{.*}}, %c255
// CHECK: {{^}}[[INDENT: +]]scf.for %{{.*}} step %c256
// CHECK-COUNT-4: memref.prefetch
// CHECK-NEXT: {{^}}[[INDENT]]}{{$}}
// A target whose hardware prefetchers do not look far enough ahead for blocks: two lines with the scales of 64 columns and 16 lines
// with their codes, 2048 bytes ahead, before the single row reads them. With several rows, each tile of the first rows prefetches 16
// columns (4.5 lines) of the chunk that is expanded two chunks later, while it multiplies.
// BLOCKS-LABEL: func.func private @linear_172x288
// BLOCKS: scf.if
// BLOCKS: %[[AT:.*]] = arith.addi %{{.*}}, %c2048
// BLOCKS-NEXT: memref.prefetch %arg3[%[[AT]]], read, locality<0>, data
// BLOCKS-COUNT-17: memref.prefetch %arg3
// BLOCKS-NOT: memref.prefetch
// BLOCKS: } else {
// BLOCKS-NOT: memref.prefetch
// BLOCKS: scf.for %{{.*}} step %c6 {
// BLOCKS: scf.for %{{.*}} = %c0 to %c64 step %c16 {
// BLOCKS: scf.if
// BLOCKS-COUNT-5: memref.prefetch %arg3
// BLOCKS-NEXT: }
// BLOCKS: func.func
// NONE-LABEL: func.func private @linear_172x288
// NONE-NOT: memref.prefetch
// NONE: func.func
func.func private @four_bits(%x: tensor<?x288x!rows>, %w: tensor<172x288x!mica.block<q4_0>, #bytes>) -> tensor<?x172xf32> {
  %y = mica.linear %x, %w kernel(generated)
      : tensor<?x288x!rows>, tensor<172x288x!mica.block<q4_0>, #bytes> -> tensor<?x172xf32>
  return %y : tensor<?x172xf32>
}
// Keys, then values, as long as 256 more positions follow.
// CHECK-LABEL: func.func private @attention_chunks
// CHECK: arith.addi %{{.*}}, %c256
// CHECK: arith.cmpi ule
// CHECK: scf.if
// CHECK-COUNT-4: memref.prefetch
// CHECK: scf.if
// CHECK-COUNT-4: memref.prefetch
func.func private @attend(%q: tensor<?x4x64xf32>, %k: !keys, %v: !values, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> tensor<?x4x64xf32> {
  %keys = mica.kv_read %k[%layer] : !keys -> tensor<?x?x2x64xbf16>
  %values = mica.kv_read %v[%layer] : !values -> tensor<?x?x2x64xbf16>
  %y = mica.attention %q, %keys, %values at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.125)
      tiling(<rows = 1, chunk = 512, split = true>) : tensor<?x4x64xf32>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16> -> tensor<?x4x64xf32>
  return %y : tensor<?x4x64xf32>
}
