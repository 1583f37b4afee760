// RUN: mica-opt --cpu-forward-entry %s | FileCheck %s

// All functions but the new entry get internal linkage.
// CHECK: func.func private @layer() attributes {llvm.linkage = #llvm.linkage<internal>}
// CHECK: func.func private @external()
// CHECK-NOT: linkage
// Internal functions lose their argument roles, which describe the interface of an entry.
// CHECK: func.func private @main_large(%{{[^:]*}}: memref<?xi32>, %{{[^:]*}}: memref<?x8xf32>) attributes {llvm.linkage = #llvm.linkage<internal>}
// CHECK: func.func private @main_small({{.*}} attributes {llvm.linkage = #llvm.linkage<internal>, mica.max_rows
// CHECK: func.func private @main_one({{.*}} attributes {llvm.linkage = #llvm.linkage<internal>, mica.max_rows
func.func private @layer() { return }
func.func private @external()
func.func @main_large(%tokens: memref<?xi32> {mica.role = "tokens"}, %logits: memref<?x8xf32> {mica.role = "logits"}) { return }
func.func @main_small(%tokens: memref<?xi32> {mica.role = "tokens"}, %logits: memref<?x8xf32> {mica.role = "logits"})
    attributes {mica.max_rows = 16 : i64} { return }
func.func @main_one(%tokens: memref<?xi32> {mica.role = "tokens"}, %logits: memref<?x8xf32> {mica.role = "logits"})
    attributes {mica.max_rows = 1 : i64} { return }

// CHECK-LABEL: func.func @mica_forward(%{{.*}}: !llvm.ptr, %{{.*}}: i64)
// CHECK: %[[SLOT0:.*]] = llvm.getelementptr %arg0[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK: %[[PTR0:.*]] = llvm.load %[[SLOT0]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[DESC0:.*]] = llvm.load %[[PTR0]] : !llvm.ptr -> !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
// CHECK: %[[TOKENS:.*]] = builtin.unrealized_conversion_cast %[[DESC0]] : {{.*}} to memref<?xi32>
// CHECK: llvm.getelementptr %arg0[1]
// CHECK: %[[LOGITS:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?x8xf32>
// CHECK: %[[ROWS:.*]] = memref.dim %[[TOKENS]]
// CHECK: %[[ONE:.*]] = arith.cmpi sle, %[[ROWS]], %c1
// CHECK: scf.if %[[ONE]] {
// CHECK-NEXT: func.call @main_one(%[[TOKENS]], %[[LOGITS]])
// CHECK-NEXT: } else {
// CHECK: %[[SMALL:.*]] = arith.cmpi sle, %[[ROWS]], %c16
// CHECK: scf.if %[[SMALL]] {
// CHECK-NEXT: func.call @main_small(
// CHECK-NEXT: } else {
// CHECK-NEXT: func.call @main_large(
