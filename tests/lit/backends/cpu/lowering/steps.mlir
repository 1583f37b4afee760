// Rows that one tile holds meet a weight from end to end. Of more rows the sums stand in memory while all of them meet a step
// of the weight, 8 KiB: here 32 groups along K of 64 columns in f32.
// RUN: mica-opt %s --mica-lower-to-exec --canonicalize --cse | FileCheck %s

#f32 = #mica.packed<columns = 64, depth = 1, k_block = 16>
// CHECK-LABEL: func.func private @linear_64x100(
// CHECK: %[[SUMS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1x16x64xf32>
// CHECK: scf.for %[[FIRST:.*]] = %c0 to %{{.*}} step %c16 {
// CHECK: %[[END:.*]] = arith.minsi
// CHECK: %[[COUNT:.*]] = arith.subi %[[END]], %[[FIRST]]
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[COUNT]], %c1
// CHECK: scf.if %[[ONE]] {
// CHECK: scf.for %{{.*}} = %c0 to %c100 step %c1 iter_args(
// CHECK: %[[TWO:.*]] = arith.cmpi eq, %[[COUNT]], %c2
// CHECK: scf.if %[[TWO]] {
// CHECK: scf.for %{{.*}} = %c0 to %c100 step %c1 iter_args(
// CHECK: %[[FOUR:.*]] = arith.cmpi eq, %[[COUNT]], %c4
// CHECK: scf.if %[[FOUR]] {
// CHECK: scf.for %{{.*}} = %c0 to %c100 step %c1 iter_args(
// CHECK: } else {
// CHECK-COUNT-4: vector.store %cst, %[[SUMS]]
// CHECK: scf.for %[[FROM:.*]] = %c0 to %c96 step %c32 {
// CHECK: %[[TO:.*]] = arith.addi %[[FROM]], %c32
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %{{.*}} step %c4 {
// CHECK-COUNT-16: vector.load %[[SUMS]]
// CHECK: scf.for %{{.*}} = %[[FROM]] to %[[TO]] step %c1 iter_args(
// CHECK-COUNT-16: vector.store %{{.*}}, %[[SUMS]]
// CHECK: step %c2 {
// CHECK: step %c1 {
// The rest of K is a step of its own.
// CHECK: scf.for %{{.*}} = %c96 to %c100 step %c1 iter_args(
func.func private @product(%x: tensor<?x100xf32>, %w: tensor<64x100xf32, #f32>) -> tensor<?x64xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x100xf32>, tensor<64x100xf32, #f32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
