// RUN: mica-opt %s --split-input-file --mica-kernels-to-loops | FileCheck %s
// RUN: mica-opt %s --split-input-file --cpu-lower-to-exec | FileCheck %s --check-prefix=EXEC

// Results of layers are written over their input if the layer can do that, otherwise they are copied.

#p = #mica.packed<columns = 64, depth = 1, k_block = 16>
mica.weight @table at 0 bytes 4096 : tensor<16x16xf32, #p>
mica.weight @norm at 8192 bytes 64 : tensor<16xf32>
mica.weight @w at 4096 bytes 4096 : tensor<16x16xf32, #p>
func.func private @layer(%x: tensor<?x16xf32>, %norm: tensor<16xf32>, %w: tensor<16x16xf32, #p>) -> tensor<?x16xf32> {
  %y = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x16xf32>, tensor<16xf32> -> tensor<?x16xf32>
  %z = mica.linear %y, %w residual(%x : tensor<?x16xf32>) kernel(generated) : tensor<?x16xf32>, tensor<16x16xf32, #p> -> tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}
// CHECK-LABEL: func.func @in_place
// CHECK: scf.for
// CHECK-NOT: memref.copy
// CHECK: func.call @layer
// CHECK-NOT: memref.copy
// CHECK: return
// EXEC-LABEL: func.func @in_place
// EXEC: scf.for {{.*}} iter_args(%[[CARRIED:.*]] = %{{.*}})
// EXEC: %[[Y:.*]] = func.call @layer(%[[CARRIED]]
// EXEC: %[[KEPT:.*]] = bufferization.materialize_in_destination %[[Y]] in %[[CARRIED]]
// EXEC: scf.yield %[[KEPT]]
func.func @in_place(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32, #p>
  %norm = mica.get_weight @norm : tensor<16xf32>
  %w = mica.get_weight @w : tensor<16x16xf32, #p>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32, #p> -> tensor<?x16xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %y = scf.for %i = %zero to %two step %one iter_args(%c = %x) -> (tensor<?x16xf32>) {
    %z = func.call @layer(%c, %norm, %w) : (tensor<?x16xf32>, tensor<16xf32>, tensor<16x16xf32, #p>) -> tensor<?x16xf32>
    scf.yield %z : tensor<?x16xf32>
  }
  %last = mica.select_rows %y, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %last : tensor<?x16xf32>
}

// -----

#p = #mica.packed<columns = 64, depth = 1, k_block = 16>
mica.weight @table at 0 bytes 4096 : tensor<16x16xf32, #p>
mica.weight @w at 4096 bytes 64 : tensor<16xf32>
func.func private @layer(%x: tensor<?x16xf32>, %w: tensor<16xf32>) -> tensor<?x16xf32> {
  %y = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x16xf32>, tensor<16xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
// CHECK-LABEL: func.func @post_norm
// CHECK: %[[X:.*]] = memref.view %{{.*}} : memref<?xi8> to memref<?x16xf32>
// CHECK: scf.for
// CHECK: %[[Y:.*]] = func.call @layer(%[[X]]
// CHECK-NEXT: memref.copy %[[Y]], %[[X]]
func.func @post_norm(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32, #p>
  %w = mica.get_weight @w : tensor<16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32, #p> -> tensor<?x16xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %y = scf.for %i = %zero to %two step %one iter_args(%c = %x) -> (tensor<?x16xf32>) {
    %z = func.call @layer(%c, %w) : (tensor<?x16xf32>, tensor<16xf32>) -> tensor<?x16xf32>
    scf.yield %z : tensor<?x16xf32>
  }
  %last = mica.select_rows %y, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %last : tensor<?x16xf32>
}

// -----

// Nested loops over two layer types: the rows are carried in one buffer, to which the result of each layer is copied.
#p = #mica.packed<columns = 64, depth = 1, k_block = 16>
mica.weight @table at 0 bytes 4096 : tensor<16x16xf32, #p>
mica.weight @w at 4096 bytes 64 : tensor<16xf32>
// CHECK-DAG: memref.global "private" constant @numbers : memref<3xi64> = dense<[0, 1, 3]>
// CHECK-DAG: memref.global "private" constant @numbers_0 : memref<3xi64> = dense<[0, 2, 3]>
func.func private @layer(%x: tensor<?x16xf32>, %w: tensor<16xf32>) -> tensor<?x16xf32> {
  %y = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x16xf32>, tensor<16xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
func.func private @other(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = mica.silu %x : tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
// CHECK-LABEL: func.func @rounds
// CHECK: %[[X:.*]] = memref.view %{{.*}} : memref<?xi8> to memref<?x16xf32>
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[TABLE:.*]] = memref.get_global @numbers : memref<3xi64>
// CHECK: %[[ENTRY:.*]] = memref.load %[[TABLE]][%[[I]]]
// CHECK: %[[FROM:.*]] = arith.index_cast %[[ENTRY]] : i64 to index
// CHECK: scf.for %{{.*}} = %[[FROM]] to
// CHECK: %[[Y:.*]] = func.call @layer(%[[X]]
// CHECK-NEXT: memref.copy %[[Y]], %[[X]]
// CHECK: scf.for
// CHECK: %[[Z:.*]] = func.call @other(%[[X]]
// CHECK-NEXT: memref.copy %[[Z]], %[[X]]
// CHECK-NOT: memref.copy
// CHECK: return
// EXEC-LABEL: func.func @rounds
// EXEC: scf.for {{.*}} iter_args(%[[CARRIED:.*]] = %{{.*}})
// EXEC: scf.for {{.*}} iter_args(%[[FIRST:.*]] = %[[CARRIED]])
// EXEC: materialize_in_destination %{{.*}} in %[[FIRST]]
// EXEC: %[[ROUND:.*]] = scf.for {{.*}} iter_args(%[[SECOND:.*]] = %{{.*}})
// EXEC: materialize_in_destination %{{.*}} in %[[SECOND]]
// EXEC-NOT: materialize_in_destination
// EXEC: scf.yield %[[ROUND]]
func.func @rounds(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x16xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<16x16xf32, #p>
  %w = mica.get_weight @w : tensor<16xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<16x16xf32, #p> -> tensor<?x16xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %y = scf.for %i = %zero to %two step %one iter_args(%c = %x) -> (tensor<?x16xf32>) {
    %next = arith.addi %i, %one : index
    %from = mica.index_table [0, 1, 3][%i]
    %to = mica.index_table [0, 1, 3][%next]
    %a = scf.for %n = %from to %to step %one iter_args(%d = %c) -> (tensor<?x16xf32>) {
      %z = func.call @layer(%d, %w) : (tensor<?x16xf32>, tensor<16xf32>) -> tensor<?x16xf32>
      scf.yield %z : tensor<?x16xf32>
    }
    %first = mica.index_table [0, 2, 3][%i]
    %end = mica.index_table [0, 2, 3][%next]
    %b = scf.for %n = %first to %end step %one iter_args(%d = %a) -> (tensor<?x16xf32>) {
      %z = func.call @other(%d) : (tensor<?x16xf32>) -> tensor<?x16xf32>
      scf.yield %z : tensor<?x16xf32>
    }
    scf.yield %b : tensor<?x16xf32>
  }
  %last = mica.select_rows %y, %o : tensor<?x16xf32>, tensor<?xi32> -> tensor<?x16xf32>
  return %last : tensor<?x16xf32>
}
