// RUN: mica-opt %s --cpu-set-target=cpu=znver4 --cpu-lower-to-exec | FileCheck %s --check-prefixes=CHECK,DOT
// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s --check-prefixes=CHECK,PLAIN --implicit-check-not=vpdp
// RUN: mica-opt %s --cpu-set-target=cpu=znver4 --mica-kernels-to-loops | FileCheck %s --check-prefix=LOOPS --implicit-check-not=memref.copy

#packed = #mica.packed<columns = 64, depth = 4, k_block = 64>
!rows = !mica.int_rows<bits = 16, group = 32>

// A row of 100 elements: two planes of 128 bytes, 64 bytes for the scales of four groups, 64 for the sums of eight. A matrix
// [172, 100]: three panels, each with one block of which 4 of 8 chunks are used.
// CHECK-LABEL: func.func private @generated
// CHECK-SAME: tensor<?x384xi8>
// CHECK-SAME: tensor<25728xi8>
// CHECK: exec.launch @linear_172x100 tasks(%c3) ins(%arg0, %arg1
func.func private @generated(%x: tensor<?x100x!rows>, %w: tensor<172x100x!mica.block<int8_g32>, #packed>) -> tensor<?x172xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x100x!rows>, tensor<172x100x!mica.block<int8_g32>, #packed> -> tensor<?x172xf32>
  return %y : tensor<?x172xf32>
}

// CHECK-LABEL: func.func private @four_bits
// CHECK-SAME: tensor<14592xi8>
// CHECK: exec.launch @linear_172x100{{.*}} tasks(%c3)
func.func private @four_bits(%x: tensor<?x100x!rows>, %w: tensor<172x100x!mica.block<int4_g32>, #packed>) -> tensor<?x172xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x100x!rows>, tensor<172x100x!mica.block<int4_g32>, #packed> -> tensor<?x172xf32>
  return %y : tensor<?x172xf32>
}

// Float activations: blocks are expanded for oneDNN panel by panel, and a kernel adds the bias. The last panel is narrower.
// CHECK-LABEL: func.func private @onednn
// CHECK: scf.for
// CHECK: exec.launch @expand_blocks
// CHECK: exec.matmul k(100) n(1024) ins(%arg0, {{.*}} : tensor<?x100xbf16>, tensor<16x64x64x2xbf16>) outs({{.*}} : tensor<?x1024xf32>)
// CHECK: exec.launch @epilogue_2100x100
// CHECK: }
// CHECK: exec.matmul k(100) n(64)
// CHECK: exec.launch @epilogue_2100x100
// LOOPS-LABEL: func.func private @onednn
// LOOPS: exec.matmul k(100) n(1024)
func.func private @onednn(%x: tensor<?x100xbf16>, %w: tensor<2100x100x!mica.block<int4_g32>, #packed>, %b: tensor<2100xf32>)
    -> tensor<?x2100xf32> {
  %y = mica.linear %x, %w bias(%b : tensor<2100xf32>) kernel(onednn)
      : tensor<?x100xbf16>, tensor<2100x100x!mica.block<int4_g32>, #packed> -> tensor<?x2100xf32>
  return %y : tensor<?x2100xf32>
}

// CHECK-LABEL: func.func private @gated
// CHECK: exec.launch @expand_blocks
// CHECK: exec.matmul k(100) n(256)
// CHECK: exec.launch @gated_epilogue_72x100
func.func private @gated(%x: tensor<?x100xf32>, %w: tensor<256x100x!mica.block<int4_g32>, #packed>) -> tensor<?x72xf32> {
  %y = mica.gated_linear %x, %w silu kernel(onednn) : tensor<?x100xf32>, tensor<256x100x!mica.block<int4_g32>, #packed> -> tensor<?x72xf32>
  return %y : tensor<?x72xf32>
}

// CHECK-LABEL: func.func private @rows
// CHECK: exec.launch @embedding
// CHECK: exec.launch @quantize
// CHECK: exec.launch @rmsnorm{{.*}} -> tensor<?x384xi8>
func.func private @rows(%tokens: tensor<?xi32>, %table: tensor<96x100x!mica.block<int6_g32>, #packed>, %g: tensor<100xf32>)
    -> (tensor<?x100x!rows>, tensor<?x100x!rows>) {
  %x = mica.embedding %tokens, %table : tensor<?xi32>, tensor<96x100x!mica.block<int6_g32>, #packed> -> tensor<?x100xf32>
  %q = mica.cast %x : tensor<?x100xf32> to tensor<?x100x!rows>
  %n = mica.rmsnorm %x, %g eps(1.0e-05) : tensor<?x100xf32>, tensor<100xf32> -> tensor<?x100x!rows>
  return %q, %n : tensor<?x100x!rows>, tensor<?x100x!rows>
}

// DOT-LABEL: func.func private @linear_172x100(
// DOT: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// PLAIN-LABEL: func.func private @linear_172x100(
// PLAIN: llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"
