// RUN: mica-opt --cpu-forward-entry %s | FileCheck %s

// All but the new entry are internal to the object.
// CHECK: func.func private @layer() attributes {llvm.linkage = #llvm.linkage<internal>}
// CHECK: func.func private @external()
// CHECK-NOT: linkage
// Nor has it roles, which are of what others call.
// CHECK: func.func private @main_many(%{{[^:]*}}: memref<?xi32>, %{{[^:]*}}: memref<?x8xf32>) attributes {llvm.linkage = #llvm.linkage<internal>}
// CHECK: func.func private @main_few({{.*}} attributes {llvm.linkage = #llvm.linkage<internal>, mica.max_rows
// CHECK: func.func private @main_one({{.*}} attributes {llvm.linkage = #llvm.linkage<internal>, mica.max_rows
func.func private @layer() { return }
func.func private @external()
func.func @main_many(%tokens: memref<?xi32> {mica.role = "tokens"}, %logits: memref<?x8xf32> {mica.role = "logits"}) { return }
func.func @main_few(%tokens: memref<?xi32> {mica.role = "tokens"}, %logits: memref<?x8xf32> {mica.role = "logits"})
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
// CHECK: %[[FEW:.*]] = arith.cmpi sle, %[[ROWS]], %c16
// CHECK: scf.if %[[FEW]] {
// CHECK-NEXT: func.call @main_few(
// CHECK-NEXT: } else {
// CHECK-NEXT: func.call @main_many(
