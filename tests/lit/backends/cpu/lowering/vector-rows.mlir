// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-lower-to-exec="bf16-dot=true int8-dot=true tiles=true" \
// RUN:   | FileCheck %s

// The module may say up to how many rows of integers take vectors where there are tile registers.
#bytes = #mica.packed<columns = 64, depth = 4, k_block = 64>
// CHECK-LABEL: func.func private @linear_64x90(
// CHECK: arith.cmpi ule, %{{.*}}, %c2
// CHECK: llvm.x86.avx512.vpdpbusd.512
// CHECK: else
// CHECK: amx.tile_muli
module attributes {mica.vector_rows = 2 : i64} {
  func.func private @integers(%x: tensor<?x90x!mica.int8>, %w: tensor<64x90x!mica.int8, #bytes>) -> tensor<?x64xf32> {
    %y = mica.linear %x, %w kernel(generated) : tensor<?x90x!mica.int8>, tensor<64x90x!mica.int8, #bytes> -> tensor<?x64xf32>
    return %y : tensor<?x64xf32>
  }
}

// -----

// expected-error @below {{has mica.vector_rows = -1 : i64, write a number of rows from 0 to 1024}}
module attributes {mica.vector_rows = -1 : i64} {
}
