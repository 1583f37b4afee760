// RUN: mica-opt --cpu-forward-entry %s | FileCheck %s

// Rows of a multi-token prediction head have functions of their own; the others are chosen by their number.
func.func @main_large(%tokens: memref<?xi32> {mica.role = "tokens"}) { return }
func.func @main_small(%tokens: memref<?xi32> {mica.role = "tokens"}) attributes {mica.max_rows = 16 : i64} { return }
func.func @draft_small(%tokens: memref<?xi32> {mica.role = "tokens"})
    attributes {mica.max_rows = 16 : i64, mica.row_role = "draft"} { return }
func.func @draft_large(%tokens: memref<?xi32> {mica.role = "tokens"}) attributes {mica.row_role = "draft"} { return }

// CHECK-LABEL: func.func @mica_forward(
// CHECK-SAME: %[[DESCRIPTORS:.*]]: !llvm.ptr, %[[ROLE:.*]]: i64)
// CHECK: %[[ROWS:.*]] = memref.dim
// CHECK: %[[DRAFT:.*]] = arith.cmpi eq, %[[ROLE]], %c2_i64
// CHECK: scf.if %[[DRAFT]] {
// CHECK: arith.cmpi sle, %[[ROWS]], %c16
// CHECK: scf.if
// CHECK-NEXT: func.call @draft_small(
// CHECK-NEXT: } else {
// CHECK-NEXT: func.call @draft_large(
// CHECK-NEXT: }
// CHECK-NEXT: } else {
// CHECK: arith.cmpi sle, %[[ROWS]], %c16
// CHECK: scf.if
// CHECK-NEXT: func.call @main_small(
// CHECK-NEXT: } else {
// CHECK-NEXT: func.call @main_large(
