// RUN: mica-opt --cpu-forward-entry %s | FileCheck %s

// The new entry dispatches on the role of rows first, then on their number; each role has its own functions.
func.func @main_prompt_large(%tokens: memref<?xi32> {mica.role = "tokens"})
    attributes {mica.row_role = "prompt"} { return }
func.func @main_prompt_medium(%tokens: memref<?xi32> {mica.role = "tokens"})
    attributes {mica.max_rows = 32 : i64, mica.row_role = "prompt"} { return }
func.func @main_decode_large(%tokens: memref<?xi32> {mica.role = "tokens"})
    attributes {mica.row_role = "decode"} { return }
func.func @main_decode_medium(%tokens: memref<?xi32> {mica.role = "tokens"})
    attributes {mica.max_rows = 32 : i64, mica.row_role = "decode"} { return }
func.func @main_decode_small(%tokens: memref<?xi32> {mica.role = "tokens"})
    attributes {mica.max_rows = 16 : i64, mica.row_role = "decode"} { return }

// CHECK-LABEL: func.func @mica_forward(
// CHECK-SAME: %[[DESCRIPTORS:.*]]: !llvm.ptr, %[[ROLE:.*]]: i64)
// CHECK: %[[ROWS:.*]] = memref.dim
// CHECK: %[[PROMPT:.*]] = arith.cmpi eq, %[[ROLE]], %c1_i64
// CHECK: scf.if %[[PROMPT]] {
// CHECK: arith.cmpi sle, %[[ROWS]], %c32
// CHECK: scf.if
// CHECK-NEXT: func.call @main_prompt_medium(
// CHECK-NEXT: } else {
// CHECK-NEXT: func.call @main_prompt_large(
// CHECK-NEXT: }
// CHECK-NEXT: } else {
// CHECK: arith.cmpi sle, %[[ROWS]], %c16
// CHECK: scf.if
// CHECK-NEXT: func.call @main_decode_small(
// CHECK-NEXT: } else {
// CHECK: arith.cmpi sle, %[[ROWS]], %c32
// CHECK: scf.if
// CHECK-NEXT: func.call @main_decode_medium(
// CHECK-NEXT: } else {
// CHECK-NEXT: func.call @main_decode_large(
