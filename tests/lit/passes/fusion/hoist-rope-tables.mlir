// RUN: mica-opt %s --split-input-file --mica-hoist-rope-tables | FileCheck %s

// Both layers need the same table: @main computes it once.

// CHECK-LABEL: func private @layer
// CHECK-SAME: (%[[P:[a-z0-9]+]]: tensor<?xi32>, %[[T:[a-z0-9]+]]: tensor<?x2x4xf32>)
func.func private @layer(%p: tensor<?xi32>) -> tensor<?x2x4xf32> {
  // CHECK-NEXT: return %[[T]]
  %t = mica.rope_table %p rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
  return %t : tensor<?x2x4xf32>
}
// Another theta, and one table with two uses.
// CHECK-LABEL: func private @other_layer
func.func private @other_layer(%p: tensor<?xi32>) -> (tensor<?x2x4xf32>, tensor<?x2x4xf32>) {
  // CHECK-NEXT: return %[[T:.*]], %[[T]]
  %t = mica.rope_table %p rotary_dim(8) theta(1.0e+06) : tensor<?xi32> -> tensor<?x2x4xf32>
  %u = mica.rope_table %p rotary_dim(8) theta(1.0e+06) : tensor<?xi32> -> tensor<?x2x4xf32>
  return %t, %u : tensor<?x2x4xf32>, tensor<?x2x4xf32>
}
// A function with two layers.
// CHECK-LABEL: func private @block
// CHECK-NOT: rope_table
func.func private @block(%p: tensor<?xi32>) -> tensor<?x2x4xf32> {
  %a = call @layer(%p) : (tensor<?xi32>) -> tensor<?x2x4xf32>
  %b:2 = call @other_layer(%p) : (tensor<?xi32>) -> (tensor<?x2x4xf32>, tensor<?x2x4xf32>)
  return %a : tensor<?x2x4xf32>
}
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[P:[a-z0-9]+]]: tensor<?xi32>)
func.func @main(%p: tensor<?xi32>) -> (tensor<?x2x4xf32>, tensor<?x2x4xf32>) {
  // CHECK-DAG: %[[T4:.*]] = mica.rope_table %[[P]] rotary_dim(8) theta(1.000000e+04)
  // CHECK-DAG: %[[T6:.*]] = mica.rope_table %[[P]] rotary_dim(8) theta(1.000000e+06)
  // CHECK-NOT: mica.rope_table
  // CHECK: call @layer(%[[P]], %[[T4]])
  %a = call @layer(%p) : (tensor<?xi32>) -> tensor<?x2x4xf32>
  // CHECK: call @block(%[[P]], %[[T1:.*]], %[[T2:.*]])
  %b = call @block(%p) : (tensor<?xi32>) -> tensor<?x2x4xf32>
  return %a, %b : tensor<?x2x4xf32>, tensor<?x2x4xf32>
}

// -----

// CHECK-LABEL: func @no_public_function
func.func @no_public_function(%p: tensor<?xi32>) -> tensor<?x2x4xf32> {
  // CHECK: mica.rope_table
  %t = mica.rope_table %p rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
  return %t : tensor<?x2x4xf32>
}

// CHECK-LABEL: func private @no_positions_of_its_own
func.func private @no_positions_of_its_own(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?x2x4xf32> {
  // CHECK: mica.rope_table
  %p = arith.addi %a, %b : tensor<?xi32>
  %t = mica.rope_table %p rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
  return %t : tensor<?x2x4xf32>
}
func.func @main(%p: tensor<?xi32>) -> tensor<?x2x4xf32> {
  %t = call @no_positions_of_its_own(%p, %p) : (tensor<?xi32>, tensor<?xi32>) -> tensor<?x2x4xf32>
  return %t : tensor<?x2x4xf32>
}

// -----

// Frequencies that depend on the sequence length: a table for each pair of positions and lengths.
#dynamic = #mica.dynamic_scaling<factor = 4.0, original_context = 128>
// CHECK-LABEL: func private @layer
// CHECK-NOT: rope_table
func.func private @layer(%p: tensor<?xi32>, %n: tensor<?xi32>) -> tensor<?x2x4xf32> {
  %t = mica.rope_table %p lengths(%n : tensor<?xi32>) rotary_dim(8) theta(1.0e+04) scaling(#dynamic) : tensor<?xi32> -> tensor<?x2x4xf32>
  return %t : tensor<?x2x4xf32>
}
// CHECK-LABEL: func private @no_lengths_of_its_own
func.func private @no_lengths_of_its_own(%p: tensor<?xi32>) -> tensor<?x2x4xf32> {
  // CHECK: mica.rope_table
  %n = arith.addi %p, %p : tensor<?xi32>
  %t = mica.rope_table %p lengths(%n : tensor<?xi32>) rotary_dim(8) theta(1.0e+04) scaling(#dynamic) : tensor<?xi32> -> tensor<?x2x4xf32>
  return %t : tensor<?x2x4xf32>
}
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[P:[a-z0-9]+]]: tensor<?xi32>, %[[N:[a-z0-9]+]]: tensor<?xi32>)
func.func @main(%p: tensor<?xi32>, %n: tensor<?xi32>) -> (tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?x2x4xf32>) {
  // CHECK: %[[T:.*]] = mica.rope_table %[[P]] lengths(%[[N]] : tensor<?xi32>)
  // CHECK-NOT: rope_table
  // CHECK: %[[SUM:.*]] = arith.addi
  // CHECK-NEXT: %[[U:.*]] = mica.rope_table %[[P]] lengths(%[[SUM]] : tensor<?xi32>)
  %sum = arith.addi %n, %n : tensor<?xi32>
  // CHECK: call @layer(%[[P]], %[[T]], %[[N]])
  %a = call @layer(%p, %n) : (tensor<?xi32>, tensor<?xi32>) -> tensor<?x2x4xf32>
  // CHECK: call @layer(%[[P]], %[[U]], %[[SUM]])
  %b = call @layer(%p, %sum) : (tensor<?xi32>, tensor<?xi32>) -> tensor<?x2x4xf32>
  %c = call @no_lengths_of_its_own(%p) : (tensor<?xi32>) -> tensor<?x2x4xf32>
  return %a, %b, %c : tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?x2x4xf32>
}
