// RUN: mica-opt %s | mica-opt | FileCheck %s
// RUN: mica-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --canonicalize | FileCheck %s --check-prefix=BUFFERS --implicit-check-not=memref.alloc --implicit-check-not=memref.copy
// RUN: mica-opt %s --cse | FileCheck %s --check-prefix=EFFECTS

// The ops of `exec` on tensors and on buffers: their bufferization and their effects.

func.func private @scale(%begin: index, %end: index, %x: memref<?x64xf32, strided<[?, 1], offset: ?>>, %factor: f32, %y: memref<?x64xf32, strided<[?, 1], offset: ?>>) { return }
func.func private @fill(%begin: index, %end: index, %y: memref<?x64xf32, strided<[?, 1], offset: ?>>) { return }

// CHECK-LABEL: func.func @launch_on_tensors
// CHECK: exec.launch @scale tasks(%{{.*}}) ins(%{{.*}}, %{{.*}} : tensor<?x64xf32>, f32) outs(%{{.*}} : tensor<?x64xf32>) -> tensor<?x64xf32>
// BUFFERS-LABEL: func.func @launch_on_tensors
// BUFFERS-SAME: (%[[X:.*]]: memref<?x64xf32>, %[[Y:.*]]: memref<?x64xf32>, %[[F:.*]]: f32, %[[N:.*]]: index)
// BUFFERS-DAG: %[[XS:.*]] = memref.cast %[[X]] : memref<?x64xf32> to memref<?x64xf32, strided<[?, 1], offset: ?>>
// BUFFERS-DAG: %[[YS:.*]] = memref.cast %[[Y]] : memref<?x64xf32> to memref<?x64xf32, strided<[?, 1], offset: ?>>
// BUFFERS: exec.launch @scale tasks(%[[N]]) ins(%[[XS]], %[[F]] : {{.*}}, f32) outs(%[[YS]] : memref<?x64xf32, strided<[?, 1], offset: ?>>){{$}}
// BUFFERS: return %[[Y]]
func.func @launch_on_tensors(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>, %factor: f32, %n: index) -> tensor<?x64xf32> {
  %z = exec.launch @scale tasks(%n) ins(%x, %factor : tensor<?x64xf32>, f32) outs(%y : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @matmul_on_tensors
// CHECK: exec.matmul accumulate k(64) n(172) ins(%{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<3x64x64x1xf32>) outs(%{{.*}} : tensor<?x172xf32>) -> tensor<?x172xf32>
// BUFFERS-LABEL: func.func @matmul_on_tensors
// BUFFERS-SAME: (%[[X:.*]]: memref<?x64xf32>, %[[W:.*]]: memref<3x64x64x1xf32>, %[[Y:.*]]: memref<?x172xf32>)
// BUFFERS: exec.matmul accumulate k(64) n(172) ins(%[[X]], %[[W]] : memref<?x64xf32>, memref<3x64x64x1xf32>) outs(%[[Y]] : memref<?x172xf32>){{$}}
func.func @matmul_on_tensors(%x: tensor<?x64xf32>, %w: tensor<3x64x64x1xf32>, %y: tensor<?x172xf32>) -> tensor<?x172xf32> {
  %z = exec.matmul accumulate k(64) n(172) ins(%x, %w : tensor<?x64xf32>, tensor<3x64x64x1xf32>) outs(%y : tensor<?x172xf32>) -> tensor<?x172xf32>
  return %z : tensor<?x172xf32>
}

// A matmul that accumulates reads its output; one that does not may overwrite an unwritten buffer.
// CHECK-LABEL: func.func @matmul_of_bf16
// BUFFERS-LABEL: func.func @matmul_of_bf16
// BUFFERS: memref.alloc
// BUFFERS: exec.matmul k(64) n(172) ins(%{{.*}}, %{{.*}} : memref<?x64xbf16>, memref<3x32x64x2xbf16>)
func.func @matmul_of_bf16(%x: tensor<?x64xbf16>, %w: tensor<3x32x64x2xbf16>, %n: index) -> tensor<?x172xf32> {
  %y = tensor.empty(%n) : tensor<?x172xf32>
  %z = exec.matmul k(64) n(172) ins(%x, %w : tensor<?x64xbf16>, tensor<3x32x64x2xbf16>) outs(%y : tensor<?x172xf32>) -> tensor<?x172xf32>
  return %z : tensor<?x172xf32>
}

// CHECK-LABEL: func.func @on_buffers
// CHECK: exec.launch @fill tasks(%{{.*}}) outs(%{{.*}} : memref<?x64xf32, strided<[?, 1], offset: ?>>){{$}}
// Ops with writes are not CSEd.
// EFFECTS-LABEL: func.func @on_buffers
// EFFECTS-COUNT-2: exec.launch @fill
// EFFECTS-COUNT-2: exec.matmul accumulate
func.func @on_buffers(%y: memref<?x64xf32, strided<[?, 1], offset: ?>>, %x: memref<?x64xf32>, %w: memref<1x64x64x1xf32>, %z: memref<?x64xf32>, %n: index) {
  exec.launch @fill tasks(%n) outs(%y : memref<?x64xf32, strided<[?, 1], offset: ?>>)
  exec.launch @fill tasks(%n) outs(%y : memref<?x64xf32, strided<[?, 1], offset: ?>>)
  exec.matmul accumulate k(64) n(64) ins(%x, %w : memref<?x64xf32>, memref<1x64x64x1xf32>) outs(%z : memref<?x64xf32>)
  exec.matmul accumulate k(64) n(64) ins(%x, %w : memref<?x64xf32>, memref<1x64x64x1xf32>) outs(%z : memref<?x64xf32>)
  return
}

// Exchanges between ranks write their outputs; rows that are shared are read as well, in place.
// CHECK-LABEL: func.func @ranks_on_tensors
// CHECK: exec.all_slice ins(%{{.*}} : tensor<?x64xf32>) outs(%{{.*}} : tensor<?x32xf32>) -> tensor<?x32xf32>
// CHECK: exec.all_gather ins(%{{.*}} : tensor<?x32xf32>) outs(%{{.*}} : tensor<?x64xf32>) -> tensor<?x64xf32>
// BUFFERS-LABEL: func.func @ranks_on_tensors
// BUFFERS-SAME: (%[[X:.*]]: memref<?x64xf32>, %[[PART:.*]]: memref<?x32xf32>, %[[Y:.*]]: memref<?x64xf32>)
// BUFFERS: exec.all_slice ins(%[[X]] : memref<?x64xf32>) outs(%[[PART]] : memref<?x32xf32>){{$}}
// BUFFERS: exec.all_gather ins(%[[PART]] : memref<?x32xf32>) outs(%[[Y]] : memref<?x64xf32>){{$}}
// BUFFERS: return %[[Y]]
func.func @ranks_on_tensors(%x: tensor<?x64xf32>, %part: tensor<?x32xf32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %a = exec.all_slice ins(%x : tensor<?x64xf32>) outs(%part : tensor<?x32xf32>) -> tensor<?x32xf32>
  %b = exec.all_gather ins(%a : tensor<?x32xf32>) outs(%y : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %b : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @shared_rows
// CHECK: exec.local_rows n(256) ins(%{{.*}} : tensor<?xi32>) outs(%{{.*}} : tensor<?xi32>) -> tensor<?xi32>
// CHECK: exec.share_rows n(256) ins(%{{.*}} : tensor<?xi32>) outs(%{{.*}} : tensor<?x64xf32>) -> tensor<?x64xf32>
// BUFFERS-LABEL: func.func @shared_rows
// BUFFERS-SAME: (%[[TOKENS:.*]]: memref<?xi32>, %[[LOCAL:.*]]: memref<?xi32>, %[[ROWS:.*]]: memref<?x64xf32>)
// BUFFERS: exec.local_rows n(256) ins(%[[TOKENS]] : memref<?xi32>) outs(%[[LOCAL]] : memref<?xi32>){{$}}
// BUFFERS: exec.share_rows n(256) ins(%[[TOKENS]] : memref<?xi32>) outs(%[[ROWS]] : memref<?x64xf32>){{$}}
// BUFFERS: return %[[LOCAL]], %[[ROWS]]
func.func @shared_rows(%tokens: tensor<?xi32>, %local: tensor<?xi32>, %rows: tensor<?x64xf32>) -> (tensor<?xi32>, tensor<?x64xf32>) {
  %0 = exec.local_rows n(256) ins(%tokens : tensor<?xi32>) outs(%local : tensor<?xi32>) -> tensor<?xi32>
  %1 = exec.share_rows n(256) ins(%tokens : tensor<?xi32>) outs(%rows : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0, %1 : tensor<?xi32>, tensor<?x64xf32>
}
