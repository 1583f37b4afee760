// RUN: mica-opt %s --split-input-file --mica-roll-layers | FileCheck %s

mica.weight @w0 : tensor<32xf32>
mica.weight @w1 : tensor<32xf32>
mica.weight @w2 : tensor<32xf32>
mica.weight @shared : tensor<32xf32>
func.func private @layer(%x: tensor<?x32xf32>, %c: !mica.kv_cache<4 x 2 x 8 x f32>, %layer: index, %p: tensor<?xi32>, %w: tensor<32xf32>, %s: tensor<32xf32>)
    -> (tensor<?x32xf32>, !mica.kv_cache<4 x 2 x 8 x f32>) {
  return %x, %c : tensor<?x32xf32>, !mica.kv_cache<4 x 2 x 8 x f32>
}
// Layers 1 to 3 of 4.
// CHECK-LABEL: func @three_layers
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x32xf32>, %[[C:[a-z0-9]+]]: !mica.kv_cache<4 x 2 x 8 x f32>, %[[P:[a-z0-9]+]]: tensor<?xi32>
func.func @three_layers(%x: tensor<?x32xf32>, %c: !mica.kv_cache<4 x 2 x 8 x f32>, %p: tensor<?xi32>)
    -> (tensor<?x32xf32>, !mica.kv_cache<4 x 2 x 8 x f32>) {
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %w0 = mica.get_weight @w0 : tensor<32xf32>
  %w1 = mica.get_weight @w1 : tensor<32xf32>
  %w2 = mica.get_weight @w2 : tensor<32xf32>
  // CHECK-NOT: mica.get_weight @w
  // CHECK: %[[SHARED:.*]] = mica.get_weight @shared
  // CHECK-NOT: mica.get_weight
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
  // CHECK-DAG: %[[THREE:.*]] = arith.constant 3 : index
  // CHECK: %[[R:.*]]:2 = scf.for %[[I:.*]] = %[[ZERO]] to %[[THREE]] step %{{.*}} iter_args(%[[Y:.*]] = %[[X]], %[[D:.*]] = %[[C]])
  // CHECK-NEXT: %[[L:.*]] = arith.addi %[[I]], %[[ONE]]
  // CHECK-NEXT: %[[W:.*]] = mica.select_weight [@w0, @w1, @w2][%[[I]]] : tensor<32xf32>
  // CHECK-NEXT: %[[Z:.*]]:2 = func.call @layer(%[[Y]], %[[D]], %[[L]], %[[P]], %[[W]], %[[SHARED]])
  // CHECK-NEXT: scf.yield %[[Z]]#0, %[[Z]]#1
  // CHECK-NEXT: }
  // CHECK-NEXT: return %[[R]]#0, %[[R]]#1
  %s0 = mica.get_weight @shared : tensor<32xf32>
  %a:2 = call @layer(%x, %c, %one, %p, %w0, %s0)
      : (tensor<?x32xf32>, !mica.kv_cache<4 x 2 x 8 x f32>, index, tensor<?xi32>, tensor<32xf32>, tensor<32xf32>) -> (tensor<?x32xf32>, !mica.kv_cache<4 x 2 x 8 x f32>)
  %s1 = mica.get_weight @shared : tensor<32xf32>
  %b:2 = call @layer(%a#0, %a#1, %two, %p, %w1, %s1)
      : (tensor<?x32xf32>, !mica.kv_cache<4 x 2 x 8 x f32>, index, tensor<?xi32>, tensor<32xf32>, tensor<32xf32>) -> (tensor<?x32xf32>, !mica.kv_cache<4 x 2 x 8 x f32>)
  %s2 = mica.get_weight @shared : tensor<32xf32>
  %d:2 = call @layer(%b#0, %b#1, %three, %p, %w2, %s2)
      : (tensor<?x32xf32>, !mica.kv_cache<4 x 2 x 8 x f32>, index, tensor<?xi32>, tensor<32xf32>, tensor<32xf32>) -> (tensor<?x32xf32>, !mica.kv_cache<4 x 2 x 8 x f32>)
  return %d#0, %d#1 : tensor<?x32xf32>, !mica.kv_cache<4 x 2 x 8 x f32>
}

// -----

func.func private @dense(%x: tensor<?x32xf32>, %layer: index) -> tensor<?x32xf32> {
  return %x : tensor<?x32xf32>
}
func.func private @sparse(%x: tensor<?x32xf32>, %layer: index) -> tensor<?x32xf32> {
  return %x : tensor<?x32xf32>
}
// Two loops, one per layer type.
// CHECK-LABEL: func @two_kinds
func.func @two_kinds(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  // CHECK-NOT: call
  // CHECK: scf.for
  // CHECK-NOT: call
  // CHECK: call @dense
  // CHECK-NOT: call
  // CHECK: scf.for
  // CHECK-NOT: call
  // CHECK: call @sparse
  // CHECK-NOT: call
  %a = call @dense(%x, %0) : (tensor<?x32xf32>, index) -> tensor<?x32xf32>
  %b = call @dense(%a, %1) : (tensor<?x32xf32>, index) -> tensor<?x32xf32>
  %c = call @sparse(%b, %2) : (tensor<?x32xf32>, index) -> tensor<?x32xf32>
  %d = call @sparse(%c, %3) : (tensor<?x32xf32>, index) -> tensor<?x32xf32>
  return %d : tensor<?x32xf32>
}

// CHECK-LABEL: func @no_single_call
func.func @no_single_call(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  // CHECK-NOT: scf.for
  %0 = arith.constant 0 : index
  %a = call @dense(%x, %0) : (tensor<?x32xf32>, index) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// CHECK-LABEL: func @no_gap_between_layers
func.func @no_gap_between_layers(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  // CHECK-NOT: scf.for
  %0 = arith.constant 0 : index
  %2 = arith.constant 2 : index
  %a = call @dense(%x, %0) : (tensor<?x32xf32>, index) -> tensor<?x32xf32>
  %b = call @dense(%a, %2) : (tensor<?x32xf32>, index) -> tensor<?x32xf32>
  return %b : tensor<?x32xf32>
}

// CHECK-LABEL: func @no_result_used_between
func.func @no_result_used_between(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  // CHECK-NOT: scf.for
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %a = call @dense(%x, %0) : (tensor<?x32xf32>, index) -> tensor<?x32xf32>
  %b = call @dense(%a, %1) : (tensor<?x32xf32>, index) -> tensor<?x32xf32>
  %c = mica.add %a, %b : tensor<?x32xf32>
  return %c : tensor<?x32xf32>
}

// CHECK-LABEL: func @no_layers_side_by_side
func.func @no_layers_side_by_side(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  // CHECK-NOT: scf.for
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %a = call @dense(%x, %0) : (tensor<?x32xf32>, index) -> tensor<?x32xf32>
  %b = call @dense(%x, %1) : (tensor<?x32xf32>, index) -> tensor<?x32xf32>
  %c = mica.add %a, %b : tensor<?x32xf32>
  return %c : tensor<?x32xf32>
}

// -----

mica.weight @w0 : tensor<32xf32>
mica.weight @w1 : tensor<32xf32>
mica.weight @w2 : tensor<32xf32>
mica.weight @w3 : tensor<32xf32>
mica.weight @w4 : tensor<32xf32>
mica.weight @shared : tensor<32xf32>
func.func private @near(%x: tensor<?x32xf32>, %layer: index, %w: tensor<32xf32>) -> tensor<?x32xf32> {
  return %x : tensor<?x32xf32>
}
func.func private @far(%x: tensor<?x32xf32>, %layer: index, %w: tensor<32xf32>, %s: tensor<32xf32>) -> tensor<?x32xf32> {
  return %x : tensor<?x32xf32>
}
// Alternating layer types: each iteration calls both. The second call's operands are available before the loop. The last @near is not rolled.
// CHECK-LABEL: func @kinds_in_turn
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x32xf32>
func.func @kinds_in_turn(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %4 = arith.constant 4 : index
  // CHECK-DAG: %[[SHARED:.*]] = mica.get_weight @shared
  // CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
  // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
  // CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[Y:.*]] = %[[X]])
  // CHECK-NEXT: %[[NEAR:.*]] = arith.muli %[[I]], %[[C2]]
  // CHECK-NEXT: %[[W:.*]] = mica.select_weight [@w0, @w2][%[[I]]]
  // CHECK-NEXT: %[[A:.*]] = func.call @near(%[[Y]], %[[NEAR]], %[[W]])
  // CHECK-NEXT: %[[TWICE:.*]] = arith.muli %[[I]], %[[C2]]
  // CHECK-NEXT: %[[FAR:.*]] = arith.addi %[[TWICE]], %[[C1]]
  // CHECK-NEXT: %[[V:.*]] = mica.select_weight [@w1, @w3][%[[I]]]
  // CHECK-NEXT: %[[B:.*]] = func.call @far(%[[A]], %[[FAR]], %[[V]], %[[SHARED]])
  // CHECK-NEXT: scf.yield %[[B]]
  // CHECK: call @near(%[[R]],
  %w0 = mica.get_weight @w0 : tensor<32xf32>
  %a = call @near(%x, %0, %w0) : (tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
  %w1 = mica.get_weight @w1 : tensor<32xf32>
  %s0 = mica.get_weight @shared : tensor<32xf32>
  %b = call @far(%a, %1, %w1, %s0) : (tensor<?x32xf32>, index, tensor<32xf32>, tensor<32xf32>) -> tensor<?x32xf32>
  %w2 = mica.get_weight @w2 : tensor<32xf32>
  %c = call @near(%b, %2, %w2) : (tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
  %w3 = mica.get_weight @w3 : tensor<32xf32>
  %s1 = mica.get_weight @shared : tensor<32xf32>
  %d = call @far(%c, %3, %w3, %s1) : (tensor<?x32xf32>, index, tensor<32xf32>, tensor<32xf32>) -> tensor<?x32xf32>
  %w4 = mica.get_weight @w4 : tensor<32xf32>
  %e = call @near(%d, %4, %w4) : (tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
  return %e : tensor<?x32xf32>
}

// The first call's result is used after the loop, but is not carried by the iterations.
// CHECK-LABEL: func @no_inner_result_used_after_loop
func.func @no_inner_result_used_after_loop(%x: tensor<?x32xf32>, %w: tensor<32xf32>) -> tensor<?x32xf32> {
  // CHECK-NOT: scf.for
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %a = call @near(%x, %0, %w) : (tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
  %b = call @far(%a, %1, %w, %w) : (tensor<?x32xf32>, index, tensor<32xf32>, tensor<32xf32>) -> tensor<?x32xf32>
  %c = call @near(%b, %2, %w) : (tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
  %d = call @far(%c, %3, %w, %w) : (tensor<?x32xf32>, index, tensor<32xf32>, tensor<32xf32>) -> tensor<?x32xf32>
  %e = mica.add %c, %d : tensor<?x32xf32>
  return %e : tensor<?x32xf32>
}

// An operand of the second call of an iteration is computed between the calls.
// CHECK-LABEL: func @no_operand_made_between
func.func @no_operand_made_between(%x: tensor<?x32xf32>, %w: tensor<32xf32>, %n: index) -> tensor<?x32xf32> {
  // CHECK-NOT: scf.for
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %a = call @near(%x, %0, %w) : (tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
  %m = arith.addi %n, %n : index
  %b = call @far(%a, %m, %w, %w) : (tensor<?x32xf32>, index, tensor<32xf32>, tensor<32xf32>) -> tensor<?x32xf32>
  %c = call @near(%b, %2, %w) : (tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
  %d = call @far(%c, %m, %w, %w) : (tensor<?x32xf32>, index, tensor<32xf32>, tensor<32xf32>) -> tensor<?x32xf32>
  return %d : tensor<?x32xf32>
}

// Two streams: each call uses the results of the two calls before it.
// CHECK-LABEL: func @no_second_stream
func.func @no_second_stream(%x: tensor<?x32xf32>, %w: tensor<32xf32>) -> tensor<?x32xf32> {
  // CHECK-NOT: scf.for
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %a = call @both(%x, %x, %0, %w) : (tensor<?x32xf32>, tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
  %b = call @both(%a, %x, %1, %w) : (tensor<?x32xf32>, tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
  %c = call @both(%b, %a, %2, %w) : (tensor<?x32xf32>, tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
  %d = call @both(%c, %b, %3, %w) : (tensor<?x32xf32>, tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
  return %d : tensor<?x32xf32>
}
func.func private @both(%x: tensor<?x32xf32>, %z: tensor<?x32xf32>, %layer: index, %w: tensor<32xf32>) -> tensor<?x32xf32>

// -----

// Layer types with separate caches: each cache is carried, and each call takes the layer index in the model and that in its
// cache.
!window = !mica.kv_cache<4 x 2 x 8 x f32 window(16)>
!whole = !mica.kv_cache<2 x 2 x 8 x f32>
func.func private @near(%x: tensor<?x32xf32>, %c: !window, %layer: index, %cache_layer: index) -> (tensor<?x32xf32>, !window) {
  return %x, %c : tensor<?x32xf32>, !window
}
func.func private @far(%x: tensor<?x32xf32>, %c: !whole, %layer: index, %cache_layer: index) -> (tensor<?x32xf32>, !whole) {
  return %x, %c : tensor<?x32xf32>, !whole
}
// CHECK-LABEL: func @own_caches
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x32xf32>, %[[W:[a-z0-9]+]]: {{.*}}, %[[A:[a-z0-9]+]]: !mica.kv_cache<2 x
func.func @own_caches(%x: tensor<?x32xf32>, %w: !window, %a: !whole) -> (tensor<?x32xf32>, !window, !whole) {
  // CHECK: %[[R:.*]]:3 = scf.for %[[I:.*]] = {{.*}} iter_args(%[[XI:.*]] = %[[X]], %[[WI:.*]] = %[[W]], %[[AI:.*]] = %[[A]])
  // CHECK: %[[FIRST:.*]]:2 = func.call @near(%[[XI]], %[[WI]], %{{.*}}, %{{.*}})
  // CHECK: %[[SECOND:.*]]:2 = func.call @near(%[[FIRST]]#0, %[[FIRST]]#1, %{{.*}}, %{{.*}})
  // CHECK: %[[THIRD:.*]]:2 = func.call @far(%[[SECOND]]#0, %[[AI]], %{{.*}}, %[[I]])
  // CHECK: scf.yield %[[THIRD]]#0, %[[SECOND]]#1, %[[THIRD]]#1
  // CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %4 = arith.constant 4 : index
  %5 = arith.constant 5 : index
  %x1, %w1 = call @near(%x, %w, %0, %0) : (tensor<?x32xf32>, !window, index, index) -> (tensor<?x32xf32>, !window)
  %x2, %w2 = call @near(%x1, %w1, %1, %1) : (tensor<?x32xf32>, !window, index, index) -> (tensor<?x32xf32>, !window)
  %x3, %a1 = call @far(%x2, %a, %2, %0) : (tensor<?x32xf32>, !whole, index, index) -> (tensor<?x32xf32>, !whole)
  %x4, %w3 = call @near(%x3, %w2, %3, %2) : (tensor<?x32xf32>, !window, index, index) -> (tensor<?x32xf32>, !window)
  %x5, %w4 = call @near(%x4, %w3, %4, %3) : (tensor<?x32xf32>, !window, index, index) -> (tensor<?x32xf32>, !window)
  %x6, %a2 = call @far(%x5, %a1, %5, %1) : (tensor<?x32xf32>, !whole, index, index) -> (tensor<?x32xf32>, !whole)
  return %x6, %w4, %a2 : tensor<?x32xf32>, !window, !whole
}

// -----

// All layers read the cache of layer 1.
func.func private @shared(%x: tensor<?x32xf32>, %layer: index, %cache_layer: index) -> tensor<?x32xf32> {
  return %x : tensor<?x32xf32>
}
// CHECK-LABEL: func @one_cache
func.func @one_cache(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %4 = arith.constant 4 : index
  %a1 = arith.constant 1 : index
  %b1 = arith.constant 1 : index
  %c1 = arith.constant 1 : index
  // CHECK-NOT: call
  // CHECK: scf.for %[[I:[a-z0-9]+]] =
  // CHECK-NEXT: %[[L:[a-z0-9]+]] = arith.addi %[[I]], %{{.*}}
  // CHECK-NEXT: call @shared(%{{.*}}, %[[L]], %c1)
  // CHECK-NOT: call
  %a = call @shared(%x, %2, %a1) : (tensor<?x32xf32>, index, index) -> tensor<?x32xf32>
  %b = call @shared(%a, %3, %b1) : (tensor<?x32xf32>, index, index) -> tensor<?x32xf32>
  %c = call @shared(%b, %4, %c1) : (tensor<?x32xf32>, index, index) -> tensor<?x32xf32>
  return %c : tensor<?x32xf32>
}
