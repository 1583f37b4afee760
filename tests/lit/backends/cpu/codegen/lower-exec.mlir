// RUN: mica-opt --cpu-lower-exec %s | FileCheck %s "--implicit-check-not={{exec\.(launch|matmul|probe|all_gather|all_slice|local_rows|share_rows)}}"
// RUN: mica-opt --cpu-lower-exec %s | FileCheck %s --check-prefix=PROBES

// A kernel only gets the dynamic values of each memref: here one pointer and the rows, and the pointer, offset and stride.
// CHECK-LABEL: llvm.func internal @scale(
// CHECK-SAME: %[[BEGIN:[a-z0-9]+]]: i64, %[[END:[a-z0-9]+]]: i64, %[[X:[a-z0-9]+]]: !llvm.ptr {llvm.noalias}, %[[ROWS:[a-z0-9]+]]: i64,
// CHECK-SAME: %[[FACTOR:[a-z0-9]+]]: f32, %[[Y:[a-z0-9]+]]: !llvm.ptr, %[[OFFSET:[a-z0-9]+]]: i64, %[[STRIDE:[a-z0-9]+]]: i64)
// CHECK: builtin.unrealized_conversion_cast {{.*}} to memref<?x64xf32>
// CHECK: builtin.unrealized_conversion_cast {{.*}} to memref<4x64xf32, strided<[?, 1], offset: ?>>
// CHECK: scf.for
// CHECK: llvm.return

// CHECK-LABEL: llvm.func internal @scale.task(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr, %[[B:.*]]: i64, %[[E:.*]]: i64)
// CHECK: llvm.getelementptr %[[CONTEXT]][0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr, i64, f32, ptr, i64, i64)>
// CHECK: llvm.call @scale(%[[B]], %[[E]], {{.*}}) : (i64, i64, !llvm.ptr, i64, f32, !llvm.ptr, i64, i64) -> ()
func.func private @scale(%begin: index, %end: index, %x: memref<?x64xf32> {llvm.noalias},
    %factor: f32, %y: memref<4x64xf32, strided<[?, 1], offset: ?>>)
    attributes {exec.cost = #exec.cost<weight_bytes = 256, row_flops = 64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %begin to %end step %c1 {
    %v = memref.load %x[%i, %c0] : memref<?x64xf32>
    %w = arith.mulf %v, %factor : f32
    memref.store %w, %y[%i, %c0] : memref<4x64xf32, strided<[?, 1], offset: ?>>
  }
  return
}

func.func private @fill(%begin: index, %end: index, %x: memref<?x64xf32>) { return }

// A context of six words is large enough for both launches of the function.
// CHECK-LABEL: func.func @launches
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: !llvm.ptr) {
// CHECK: %[[MEMORY:.*]] = llvm.alloca %{{.*}} x !llvm.array<6 x i64> {alignment = 16 : i64}
// CHECK: llvm.store %{{.*}}, %{{.*}} : f32, !llvm.ptr
// CHECK: %[[TASK:.*]] = llvm.mlir.addressof @scale.task
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %[[TABLE]][2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK: %[[PARALLEL_FOR:.*]] = llvm.load %[[SLOT]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[TABLE]][1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK: %[[RUNTIME:.*]] = llvm.load %[[PLACE]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.call %[[PARALLEL_FOR]](%[[RUNTIME]], %[[TASK]], %[[MEMORY]], %{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()
// CHECK: llvm.mlir.addressof @fill.task
// CHECK: llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()
// A view is cast to the kernel's argument type.
// CHECK: memref.cast %{{.*}} : memref<8x64xf32> to memref<?x64xf32>
// CHECK: llvm.mlir.addressof @fill.task
// CHECK: llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()
func.func @launches(%n: index, %x: memref<?x64xf32>, %y: memref<4x64xf32, strided<[?, 1], offset: ?>>, %s: memref<8x64xf32>) {
  %c1 = arith.constant 1 : index
  %f = arith.constant 2.0 : f32
  exec.launch @scale tasks(%n) ins(%x, %f : memref<?x64xf32>, f32) outs(%y : memref<4x64xf32, strided<[?, 1], offset: ?>>)
  exec.launch @fill tasks(%n) outs(%x : memref<?x64xf32>)
  exec.launch @fill tasks(%c1) outs(%s : memref<8x64xf32>)
  return
}

// CHECK-LABEL: func.func @products
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %{{.*}}[3] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK: %[[MATMUL:.*]] = llvm.load %[[SLOT]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.call %[[MATMUL]](%{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, i32, i32) -> ()
func.func @products(%x: memref<?x40xbf16, strided<[80, 1], offset: ?>>, %w: memref<2x32x64x2xbf16>, %y: memref<?x100xf32>) {
  exec.matmul accumulate k(40) n(100) ins(%x, %w : memref<?x40xbf16, strided<[80, 1], offset: ?>>, memref<2x32x64x2xbf16>)
      outs(%y : memref<?x100xf32>)
  return
}

// PROBES: llvm.mlir.global internal constant @probe.0("linear o_proj")
// CHECK-LABEL: func.func @probes
// CHECK: llvm.mlir.addressof @probe.0
// CHECK: %[[F32:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %{{.*}}[4] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK: %[[PROBE:.*]] = llvm.load %[[SLOT]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.call %[[PROBE]](%{{.*}}, %[[F32]]) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr, i64, i64, i64, i32) -> ()
// CHECK: llvm.mlir.addressof @probe.1
// CHECK: %[[BF16:.*]] = llvm.mlir.constant(1 : i32) : i32
// CHECK: llvm.call %{{.*}}(%{{.*}}, %[[BF16]])
// CHECK: llvm.mlir.addressof @probe.2
// CHECK: %[[I32:.*]] = llvm.mlir.constant(2 : i32) : i32
// CHECK: llvm.call %{{.*}}(%{{.*}}, %[[I32]])
func.func @probes(%layer: index, %x: memref<?x64xf32, strided<[80, 1], offset: ?>>, %y: memref<?x2x32xbf16>, %z: memref<?x2xi32>) {
  exec.probe "linear o_proj" layer(%layer) ins(%x : memref<?x64xf32, strided<[80, 1], offset: ?>>)
  exec.probe "attention" layer(%layer) ins(%y : memref<?x2x32xbf16>)
  exec.probe "choices" layer(%layer) ins(%z : memref<?x2xi32>)
  return
}

// Rows are passed as their address, the stride and the size of each in bytes, and their number; each head is a row.
// CHECK-LABEL: func.func @ranks
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: !llvm.ptr) {
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(64 : i64) : i64
// CHECK: llvm.getelementptr %[[TABLE]][5] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %[[BYTES]], %{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr, i64, i64, i64) -> ()
// CHECK: llvm.getelementptr %[[TABLE]][6] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK: llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr, i64, i64, i64) -> ()
// CHECK: llvm.getelementptr %[[TABLE]][7] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK: llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64) -> ()
// CHECK: llvm.getelementptr %[[TABLE]][8] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK: llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> ()
func.func @ranks(%part: memref<?x4x32xbf16>, %whole: memref<?x4x64xbf16>, %x: memref<?x64xf32>, %y: memref<?x32xf32, strided<[80, 1], offset: ?>>,
    %tokens: memref<?xi32>, %local: memref<?xi32>) {
  exec.all_gather ins(%part : memref<?x4x32xbf16>) outs(%whole : memref<?x4x64xbf16>)
  exec.all_slice ins(%x : memref<?x64xf32>) outs(%y : memref<?x32xf32, strided<[80, 1], offset: ?>>)
  exec.local_rows n(256) ins(%tokens : memref<?xi32>) outs(%local : memref<?xi32>)
  exec.share_rows n(256) ins(%tokens : memref<?xi32>) outs(%x : memref<?x64xf32>)
  return
}

// The table is passed to a function through its callers, whatever their order, and only to functions that need it.
// CHECK-LABEL: func.func private @layer(
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: !llvm.ptr) {
// CHECK: func.call @products(%{{.*}}, %[[TABLE]]) : ({{.*}}, !llvm.ptr) -> ()
// CHECK: call @adds(%{{[a-z0-9]+}}) : (memref<?x100xf32>) -> ()
// CHECK-LABEL: func.func @mica_forward(
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: !llvm.ptr) {
// CHECK: call @layer(%{{.*}}, %[[TABLE]]) : ({{.*}}, !llvm.ptr) -> ()
// CHECK-LABEL: func.func private @adds(
// CHECK-NOT: !llvm.ptr
// CHECK: return
func.func private @layer(%again: i1, %x: memref<?x40xbf16, strided<[80, 1], offset: ?>>, %w: memref<2x32x64x2xbf16>, %y: memref<?x100xf32>) {
  scf.if %again {
    func.call @products(%x, %w, %y) : (memref<?x40xbf16, strided<[80, 1], offset: ?>>, memref<2x32x64x2xbf16>, memref<?x100xf32>) -> ()
  }
  func.call @adds(%y) : (memref<?x100xf32>) -> ()
  return
}
func.func @mica_forward(%again: i1, %x: memref<?x40xbf16, strided<[80, 1], offset: ?>>, %w: memref<2x32x64x2xbf16>, %y: memref<?x100xf32>) {
  func.call @layer(%again, %x, %w, %y) : (i1, memref<?x40xbf16, strided<[80, 1], offset: ?>>, memref<2x32x64x2xbf16>, memref<?x100xf32>) -> ()
  return
}
func.func private @adds(%y: memref<?x100xf32>) { return }

// For each kernel: its name, the offset in bytes of its rows in the context (after the pointer), and its cost.
// CHECK: llvm.mlir.global external constant @mica_kernel_names("scale\00fill\00")
// CHECK: llvm.mlir.global external constant @mica_kernel_costs(dense<
// CHECK-SAME: [8, 256, 0, 0, 0, 0, 0, 0, 64, 0, 0], [8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
// CHECK-SAME: !llvm.array<2 x array<11 x i64>>
// CHECK: llvm.mlir.global external constant @mica_kernel_tasks() {{.*}} : !llvm.array<3 x ptr> {
// CHECK: llvm.mlir.addressof @scale.task
// CHECK: llvm.mlir.addressof @fill.task
// CHECK: llvm.mlir.global external constant @mica_runtime_bytes(72 : i64)
