// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s "--implicit-check-not=arith.subi {{.*}} : vector<64xi8>"
// RUN: sed s/iq4_nl/q4_0/ %s | mica-opt --cpu-lower-to-exec | FileCheck %s --check-prefix=BIAS

// Levels from a table are signed. For other codes, the bias is subtracted, once per quad.
// CHECK-LABEL: func.func private @embedding
// CHECK-COUNT-8: llvm.call_intrinsic "llvm.x86.avx512.pshuf.b.512"
// BIAS-LABEL: func.func private @embedding
// BIAS-COUNT-8: arith.subi {{.*}} : vector<64xi8>
#packed = #mica.packed<columns = 64, depth = 4, k_block = 64>
func.func private @gathered(%t: tensor<?xi32>, %table: tensor<96x64x!mica.block<iq4_nl>, #packed>) -> tensor<?x64xf32> {
  %y = mica.embedding %t, %table : tensor<?xi32>, tensor<96x64x!mica.block<iq4_nl>, #packed> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
