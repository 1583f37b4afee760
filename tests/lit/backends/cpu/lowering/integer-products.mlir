// RUN: mica-opt %s --mica-lower-to-exec=int8-dot=true | FileCheck %s --check-prefixes=CHECK,DOT
// RUN: mica-opt %s --mica-lower-to-exec | FileCheck %s --check-prefixes=CHECK,PLAIN
// RUN: mica-opt %s --mica-kernels-to-loops=int8-dot=true | FileCheck %s --check-prefix=LOOPS

#packed = #mica.packed<columns = 64, depth = 4, k_block = 64>

// A quantised row of 100 elements: 128 bytes of values with 128 added, 64 with the scale, 64 with sums of groups, 128 bytes of
// values as they are. A matrix [172, 100]: three blocks of 64 x 128 bytes, 192 scales and 192 sums.
// CHECK-LABEL: func.func private @generated
// CHECK-SAME: tensor<?x384xi8>
// CHECK-SAME: tensor<26112xi8>
// CHECK: exec.launch @linear_172x100 tasks(%c3) ins(%arg0, %arg1
func.func private @generated(%x: tensor<?x100x!mica.int8>, %w: tensor<172x100x!mica.int8, #packed>) -> tensor<?x172xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x100x!mica.int8>, tensor<172x100x!mica.int8, #packed> -> tensor<?x172xf32>
  return %y : tensor<?x172xf32>
}

// Blocks of int4: four groups of 64 multipliers and 1024 bytes each.
// CHECK-LABEL: func.func private @four_bits
// CHECK-SAME: tensor<14592xi8>
// CHECK: exec.launch @linear_172x100{{.*}} tasks(%c3)
func.func private @four_bits(%x: tensor<?x100x!mica.int8>, %w: tensor<172x100x!mica.int4<group = 32>, #packed>) -> tensor<?x172xf32> {
  %y = mica.linear %x, %w kernel(generated)
      : tensor<?x100x!mica.int8>, tensor<172x100x!mica.int4<group = 32>, #packed> -> tensor<?x172xf32>
  return %y : tensor<?x172xf32>
}

// oneDNN sums integers panel by panel; a kernel makes numbers of them. The last panel is narrower.
// CHECK-LABEL: func.func private @onednn
// CHECK: scf.for
// CHECK: tensor.extract_slice %arg1
// CHECK: exec.matmul k(100) n(1024) ins(%arg0, {{.*}} : tensor<?x384xi8>, tensor<131072xi8>) outs({{.*}} : tensor<?x1024xi32>)
// CHECK: exec.launch @epilogue_2100x100
// CHECK: }
// CHECK: exec.matmul k(100) n(64)
// CHECK: exec.launch @epilogue_2100x100
// LOOPS-LABEL: func.func private @onednn
// LOOPS-NOT: memref.copy
// LOOPS: exec.matmul k(100) n(1024)
func.func private @onednn(%x: tensor<?x100x!mica.int8>, %w: tensor<2100x100x!mica.int8, #packed>, %b: tensor<2100xf32>)
    -> tensor<?x2100xf32> {
  %y = mica.linear %x, %w bias(%b : tensor<2100xf32>) kernel(onednn)
      : tensor<?x100x!mica.int8>, tensor<2100x100x!mica.int8, #packed> -> tensor<?x2100xf32>
  return %y : tensor<?x2100xf32>
}

// CHECK-LABEL: func.func private @gated
// CHECK: exec.launch @expand_int4
// CHECK: exec.matmul k(100) n(256)
// CHECK: exec.launch @gated_epilogue_72x100
func.func private @gated(%x: tensor<?x100x!mica.int8>, %w: tensor<256x100x!mica.int4<group = 32>, #packed>) -> tensor<?x72xf32> {
  %y = mica.gated_linear %x, %w silu kernel(onednn)
      : tensor<?x100x!mica.int8>, tensor<256x100x!mica.int4<group = 32>, #packed> -> tensor<?x72xf32>
  return %y : tensor<?x72xf32>
}

// CHECK-LABEL: func.func private @rows
// CHECK: exec.launch @embedding
// CHECK: exec.launch @quantize
// CHECK: exec.launch @rmsnorm{{.*}} -> tensor<?x384xi8>
func.func private @rows(%tokens: tensor<?xi32>, %table: tensor<96x100x!mica.int8, #packed>, %g: tensor<100xf32>)
    -> (tensor<?x100x!mica.int8>, tensor<?x100x!mica.int8>) {
  %x = mica.embedding %tokens, %table : tensor<?xi32>, tensor<96x100x!mica.int8, #packed> -> tensor<?x100xf32>
  %q = mica.cast %x : tensor<?x100xf32> to tensor<?x100x!mica.int8>
  %n = mica.rmsnorm %x, %g eps(1.0e-05) : tensor<?x100xf32>, tensor<100xf32> -> tensor<?x100x!mica.int8>
  return %q, %n : tensor<?x100x!mica.int8>, tensor<?x100x!mica.int8>
}

// DOT-LABEL: func.func private @linear_172x100(
// DOT: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// DOT-LABEL: func.func private @linear_172x100_0(
// DOT: llvm.call_intrinsic "llvm.x86.avx512.vpdpwssd.512"
// PLAIN-NOT: llvm.call_intrinsic
