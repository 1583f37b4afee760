// Up to one tile of rows is multiplied by a weight from end to end. For more rows, sums are kept in memory while all rows are
// multiplied by a step of the weight of 8 KiB: here 32 groups along K of 64 columns in f32.
// RUN: mica-opt %s --cpu-lower-to-exec --canonicalize --cse | FileCheck %s

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
// Five or more rows prefetch the next step while they compute the current one; each row prefetches its share, in 64ths of an element.
// CHECK: %[[MANY:.*]] = arith.cmpi sge, %[[COUNT]], %c5
// CHECK: %[[DISTANCE:.*]] = arith.select %[[MANY]], %c2048, %c0
// CHECK: %[[SHARE:.*]] = arith.divui %c4096, %[[COUNT]]
// CHECK: scf.for %[[FROM:.*]] = %c0 to %c100 step %c32 {
// CHECK: %[[NEXT:.*]] = arith.addi %[[FROM]], %c32
// CHECK: %[[TO:.*]] = arith.minsi %[[NEXT]], %c100
// CHECK: scf.for %[[ROW:.*]] = %[[FIRST]] to %{{.*}} step %c4 {
// CHECK: %[[PER_GROUP:.*]] = arith.muli %[[SHARE]], %c4
// CHECK: %[[BEFORE:.*]] = arith.subi %[[ROW]], %[[FIRST]]
// CHECK: %[[TAKEN:.*]] = arith.muli %[[BEFORE]], %[[SHARE]]
// CHECK: %[[BEGIN:.*]] = arith.addi %{{.*}}, %[[DISTANCE]]
// CHECK: %[[STEPS:.*]] = arith.muli %[[TAKEN]], %c32
// CHECK: %[[WHOLE:.*]] = arith.divui %[[STEPS]], %c64
// CHECK: %[[MINE:.*]] = arith.addi %[[BEGIN]], %[[WHOLE]]
// CHECK-COUNT-16: vector.load %[[SUMS]]
// CHECK: scf.for %[[GROUP:.*]] = %[[FROM]] to %[[TO]] step %c1 iter_args(
// CHECK: %[[PASSED:.*]] = arith.subi %[[GROUP]], %[[FROM]]
// CHECK: %[[PARTS:.*]] = arith.muli %[[PASSED]], %[[PER_GROUP]]
// CHECK: %[[LINES:.*]] = arith.divui %[[PARTS]], %c64
// CHECK: %[[AT:.*]] = arith.addi %[[MINE]], %[[LINES]]
// CHECK: memref.prefetch %{{.*}}[%[[AT]]], read, locality<2>, data
// CHECK-COUNT-3: memref.prefetch
// CHECK: vector.fma
// CHECK-COUNT-16: vector.store %{{.*}}, %[[SUMS]]
// CHECK: step %c2 {
// CHECK-COUNT-2: memref.prefetch
// CHECK: step %c1 {
// CHECK-COUNT-1: memref.prefetch
func.func private @product(%x: tensor<?x100xf32>, %w: tensor<64x100xf32, #f32>) -> tensor<?x64xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x100xf32>, tensor<64x100xf32, #f32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// The value of K that is not part of a pair is a separate step.
#bf16 = #mica.packed<columns = 64, depth = 2, k_block = 32>
// CHECK-LABEL: func.func private @linear_64x101(
// CHECK: scf.for %[[FROM:.*]] = %c0 to %c50 step %c32 {
// CHECK: step %c4 {
// CHECK: iter_args(
// CHECK: step %c4 {
// CHECK-NOT: iter_args(
// CHECK: step %c2 {
func.func private @odd(%x: tensor<?x101xbf16>, %w: tensor<64x101xbf16, #bf16>) -> tensor<?x64xf32> {
  %y = mica.linear %x, %w kernel(generated) : tensor<?x101xbf16>, tensor<64x101xbf16, #bf16> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// For gate and up, a row reads one panel after the other, not both in alternation: the data of a task is one stream.
// CHECK-LABEL: func.func private @gated_linear_64x100(
// CHECK: scf.if
// CHECK: %[[GATE:.*]]:4 = scf.for %{{.*}} = %c0 to %c100 step %c1 iter_args(
// CHECK-COUNT-4: vector.fma
// CHECK-NOT: vector.fma
// CHECK: %[[UP:.*]]:4 = scf.for %{{.*}} = %c0 to %c100 step %c1 iter_args(
// CHECK-COUNT-4: vector.fma
// CHECK-NOT: vector.fma
// CHECK: %[[GATE]]#0
// CHECK: %[[UP]]#0
func.func private @gated(%x: tensor<?x100xf32>, %w: tensor<128x100xf32, #f32>) -> tensor<?x64xf32> {
  %y = mica.gated_linear %x, %w silu kernel(generated) : tensor<?x100xf32>, tensor<128x100xf32, #f32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
