// RUN: mica-opt %s --cpu-set-target=cpu=sapphirerapids --cpu-lower-to-exec | FileCheck %s
// RUN: mica-opt %s --cpu-set-target=cpu=znver4 --cpu-lower-to-exec | FileCheck %s --check-prefix=WITHOUT --implicit-check-not=amx.tile
// WITHOUT: func.func private @linear_172x40

#f32 = #mica.packed<columns = 64, depth = 1, k_block = 16>
#bf16 = #mica.packed<columns = 64, depth = 2, k_block = 32>

func.func private @pairs(%x: tensor<?x40xbf16>, %w: tensor<172x40xbf16, #bf16>) -> tensor<?x172xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x40xbf16>, tensor<172x40xbf16, #bf16> -> tensor<?x172xf32>
  return %y : tensor<?x172xf32>
}

func.func private @gated(%x: tensor<?x64xbf16>, %w: tensor<256x64xbf16, #bf16>) -> tensor<?x72xbf16> {
  %y = mica.gated_linear %x, %w silu kernel(generated) : tensor<?x64xbf16>, tensor<256x64xbf16, #bf16> -> tensor<?x72xbf16>
  return %y : tensor<?x72xbf16>
}

// An incomplete pair at the end of a row, or numbers that are not bf16: vectors.
func.func private @odd(%x: tensor<?x39xbf16>, %w: tensor<64x39xbf16, #bf16>) -> tensor<?x64xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x39xbf16>, tensor<64x39xbf16, #bf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

func.func private @wide(%x: tensor<?x40xf32>, %w: tensor<64x40xf32, #f32>) -> tensor<?x64xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x40xf32>, tensor<64x40xf32, #f32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// Up to eight panels at a time with up to 256 rows. A single row is multiplied by vectors, and sums over 32 values are added like
// those of a tile. Of the 40 values along K, the last 8 are copied to a zeroed buffer.
// CHECK-LABEL: func.func private @linear_172x40(
// CHECK-DAG: memref.alloca() {{.*}} : memref<256x16x32xbf16>
// CHECK-DAG: memref.alloca() {{.*}} : memref<8x256x64xf32>
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c256
// CHECK: scf.if
// CHECK: vector.fma
// CHECK: arith.addf
// CHECK: else
// Steps of 32 values: 16 steps are copied at once, or 256 for a single tile of rows.
// CHECK: %[[ROOM:.*]] = arith.select %{{.*}}, %c256{{.*}}, %c16
// CHECK: scf.while
// CHECK: arith.minsi %{{.*}}, %[[ROOM]]
// CHECK: vector.store %{{.*}} : memref<256x16x32xbf16>, vector<32xbf16>
// CHECK: vector.store %{{.*}} : memref<256x16x32xbf16>, vector<8xbf16>
// Two tiles of rows by two of columns, then the remaining rows by four tiles.
// CHECK-COUNT-4: amx.tile_load %{{.*}} into !amx.tile<16x16xf32>
// CHECK: scf.for
// CHECK-COUNT-2: amx.tile_load %{{.*}} : memref<256x16x32xbf16> into !amx.tile<16x32xbf16>
// CHECK-COUNT-4: amx.tile_mulf {{.*}} : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
// CHECK-COUNT-4: amx.tile_store
// CHECK-COUNT-4: amx.tile_load %{{.*}} into !amx.tile<16x16xf32>
// CHECK-COUNT-4: amx.tile_mulf
// CHECK-COUNT-4: amx.tile_store
// CHECK-NOT: amx.tile_mulf
// CHECK-LABEL: func.func private @gated_linear_72x64(
// CHECK: memref.alloca() {{.*}} : memref<8x256x64xf32>
// CHECK-COUNT-8: amx.tile_mulf
// CHECK-NOT: amx.tile_mulf

// CHECK-LABEL: func.func private @linear_64x39(
// CHECK-NOT: amx.tile_mulf
// CHECK-LABEL: func.func private @linear_64x40(
// CHECK-NOT: amx.tile_mulf
