// RUN: mica-opt %s --cpu-set-target=cpu=x86-64-v3 --cpu-lower-to-exec | FileCheck %s --implicit-check-not=vpdpbusd
// RUN: mica-opt %s --cpu-set-target=cpu=alderlake --cpu-lower-to-exec | FileCheck %s --check-prefix=DOT -DBITS=256 --implicit-check-not=pmadd
// RUN: mica-opt %s --cpu-set-target=cpu=icelake-server --cpu-lower-to-exec | FileCheck %s --check-prefixes=DOT,DOT512 -DBITS=512 --implicit-check-not=pmadd
// RUN: mica-opt %s --cpu-set-target=cpu=x86-64-v4 --cpu-lower-to-exec | FileCheck %s --check-prefix=WIDE --implicit-check-not=vpdp --implicit-check-not=x86.avx2
// RUN: mica-opt %s --cpu-set-target=cpu=znver4 --cpu-lower-to-exec | FileCheck %s --check-prefix=BYTES --implicit-check-not=vpdpwssd
// Instructions that must not occur anywhere in a kernel:
// RUN: mica-opt %s --cpu-set-target=cpu=x86-64-v3 --cpu-lower-to-exec | sed -n '/@linear_64x64(/,/^  }/p' | FileCheck %s --check-prefix=OF-WORDS --implicit-check-not=pmadd.ub.sw
// RUN: mica-opt %s --cpu-set-target=cpu=x86-64-v3 --cpu-lower-to-exec | sed -n '/@linear_64x96(/,/^  }/p' | FileCheck %s --check-prefix=OF-FEW-BITS --implicit-check-not=psign
// RUN: mica-opt %s --cpu-set-target=cpu=znver4 --cpu-lower-to-exec | sed -n '/@quantize(/,/^  }/p' | FileCheck %s --check-prefix=OF-BYTES --implicit-check-not=vector.shuffle

#packed = #mica.packed<columns = 64, depth = 4, k_block = 64>
!words = !mica.int_rows<bits = 16, group = 32>
!bytes = !mica.int_rows<bits = 8, group = 32>

func.func private @words(%x: tensor<?x64xf32>, %w: tensor<64x64x!mica.block<q4_0>, #packed>) -> tensor<?x64xf32> {
  %q = mica.cast %x : tensor<?x64xf32> to tensor<?x64x!words>
  %y = mica.linear %q, %w kernel(generated) : tensor<?x64x!words>, tensor<64x64x!mica.block<q4_0>, #packed> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

func.func private @low_bits(%x: tensor<?x96x!bytes>, %w: tensor<64x96x!mica.block<q4_0>, #packed>) -> tensor<?x64xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x96x!bytes>, tensor<64x96x!mica.block<q4_0>, #packed> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

func.func private @eight_bits(%x: tensor<?x128x!bytes>, %w: tensor<64x128x!mica.block<q8_0>, #packed>) -> tensor<?x64xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x128x!bytes>, tensor<64x128x!mica.block<q8_0>, #packed> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// Activations are 16-bit words: of each four, the even ones first, then the odd ones.
// CHECK-LABEL: func.func private @quantize(
// CHECK: %[[WORDS:.*]] = arith.trunci %{{.*}} : vector<16xi32> to vector<16xi16>
// CHECK: vector.shuffle %[[WORDS]], %[[WORDS]] [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15]
// BYTES-LABEL: func.func private @quantize(
// OF-BYTES: func.func private @quantize(
// OF-BYTES: return
// BYTES: arith.trunci %{{.*}} : vector<16xi32> to vector<16xi8>

// A single row is multiplied by codes directly: the even bytes of a lane, then the odd ones.
// CHECK-LABEL: func.func private @linear_64x64(
// OF-WORDS: func.func private @linear_64x64(
// OF-WORDS: pmadd.wd
// OF-WORDS: return
// CHECK: scf.if
// CHECK: arith.andi %{{.*}}, %{{.*}} : vector<32xi16>
// CHECK: arith.shrui %{{.*}}, %{{.*}} : vector<32xi16>
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// For more rows, signed levels are expanded, two chunks at a time. The loop over pairs of rows uses all registers.
// CHECK: else
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c2
// CHECK: arith.subi %{{.*}}, %{{.*}} : vector<32xi16>
// CHECK: vector.store %{{.*}} : memref<4096xi16>, vector<32xi16>
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c16{{.*}} step %c4
// CHECK: vector.load %{{.*}} : memref<4096xi16>, vector<32xi16>
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// CHECK: llvm.loop_annotation
// DOT-LABEL: func.func private @linear_64x64(
// DOT: arith.andi %{{.*}}, %{{.*}} : vector<32xi16>
// DOT: llvm.call_intrinsic "llvm.x86.avx512.vpdpwssd.[[BITS]]"
// DOT: vector.store %{{.*}} : memref<4096xi16>, vector<32xi16>
// With 32 registers, an iteration has four pairs, for all columns.
// DOT512: scf.for %{{.*}} = %c0{{.*}} to %c16{{.*}} step %c4{{.*}} -> (vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>,
// DOT: llvm.call_intrinsic "llvm.x86.avx512.vpdpwssd.[[BITS]]"
// BYTES-LABEL: func.func private @linear_64x64(
// BYTES: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// WIDE-LABEL: func.func private @linear_64x64(
// WIDE: llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"

// Products of bytes with few bits are summed as 16-bit words over a whole group, and their bias is subtracted from the sum.
// CHECK-LABEL: func.func private @linear_64x96(
// OF-FEW-BITS: func.func private @linear_64x96(
// OF-FEW-BITS: pmadd.ub.sw
// OF-FEW-BITS: return
// CHECK: scf.for {{.*}} -> (vector<32xi16>
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"
// CHECK: arith.addi %{{.*}}, %{{.*}} : vector<32xi16>
// CHECK: llvm.loop_annotation
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// CHECK: arith.muli %{{.*}}, %c8_i32
// DOT-LABEL: func.func private @linear_64x96(
// DOT: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.[[BITS]]"
// WIDE-LABEL: func.func private @linear_64x96(
// WIDE: llvm.call_intrinsic "llvm.x86.avx512.pmaddubs.w.512"

// With eight bits: magnitudes of the codes, and activations with the signs of the codes.
// CHECK-LABEL: func.func private @linear_64x128(
// CHECK: math.absi %{{.*}} : vector<64xi8>
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.psign.b"
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// WIDE-LABEL: func.func private @linear_64x128(
// WIDE: math.absi %{{.*}} : vector<64xi8>
// WIDE: %[[NEGATIVE:.*]] = arith.cmpi slt, %{{.*}} : vector<64xi8>
// WIDE: arith.select %[[NEGATIVE]], %{{.*}} : vector<64xi1>, vector<64xi8>
// WIDE: llvm.call_intrinsic "llvm.x86.avx512.pmaddubs.w.512"
// WIDE: llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"
