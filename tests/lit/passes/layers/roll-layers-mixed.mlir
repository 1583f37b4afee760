// RUN: mica-opt %s --split-input-file --mica-roll-layers | FileCheck %s

// Layer types without a periodic pattern.

!x = tensor<?x32xf32>
!w = tensor<32xf32>
!cache = !mica.kv_cache<8 x 2 x 8 x f32>
mica.weight @w0 : !w
mica.weight @w1 : !w
mica.weight @w2 : !w
mica.weight @w3 : !w
mica.weight @w4 : !w
mica.weight @w5 : !w
mica.weight @w6 : !w
mica.weight @w7 : !w
mica.weight @w8 : !w
mica.weight @w9 : !w
mica.weight @w10 : !w
mica.weight @w11 : !w
mica.weight @w12 : !w
mica.weight @w13 : !w
mica.weight @w14 : !w
mica.weight @w15 : !w
mica.weight @shared : !w
func.func private @near(%x: !x, %layer: index, %w: !w) -> !x {
  return %x : !x
}
func.func private @far(%x: !x, %c: !cache, %layer: index, %w: !w, %s: !w) -> (!x, !cache) {
  return %x, %c : !x, !cache
}
// @near is called for layers 0, 1, 3, ... of the model, @far for 0 to 7 of the cache: five iterations.
// CHECK-LABEL: func @two_kinds
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x32xf32>, %[[C:[a-z0-9]+]]: !mica.kv_cache<8 x 2 x 8 x f32>
func.func @two_kinds(%x0: !x, %c0: !cache) -> (!x, !cache) {
  // CHECK-DAG: %[[SHARED:.*]] = mica.get_weight @shared
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
  // CHECK-DAG: %[[FIVE:.*]] = arith.constant 5 : index
  // CHECK: %[[R:.*]]:2 = scf.for %[[I:.*]] = %{{.*}} to %[[FIVE]] step %{{.*}} iter_args(%[[Y:.*]] = %[[X]], %[[D:.*]] = %[[C]])
  // CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[I]], %{{.*}}
  // CHECK-NEXT: %[[FROM:.*]] = mica.index_table [0, 2, 3, 4, 7, 8][%[[I]]]
  // CHECK-NEXT: %[[TO:.*]] = mica.index_table [0, 2, 3, 4, 7, 8][%[[NEXT]]]
  // CHECK-NEXT: %[[A:.*]] = scf.for %[[N:.*]] = %[[FROM]] to %[[TO]] step %{{.*}} iter_args(%[[U:.*]] = %[[Y]])
  // CHECK-NEXT: %[[L:.*]] = mica.index_table [0, 1, 3, 7, 10, 11, 12, 14][%[[N]]]
  // CHECK-NEXT: %[[W:.*]] = mica.select_weight [@w0, @w1, @w3, @w7, @w10, @w11, @w12, @w14][%[[N]]]
  // CHECK-NEXT: %[[NEAR:.*]] = func.call @near(%[[U]], %[[L]], %[[W]])
  // CHECK-NEXT: scf.yield %[[NEAR]]
  // CHECK-NEXT: }
  // CHECK-NEXT: %[[FIRST:.*]] = mica.index_table [0, 1, 4, 6, 7, 8][%[[I]]]
  // CHECK-NEXT: %[[END:.*]] = mica.index_table [0, 1, 4, 6, 7, 8][%[[NEXT]]]
  // CHECK-NEXT: %[[B:.*]]:2 = scf.for %[[M:.*]] = %[[FIRST]] to %[[END]] step %{{.*}} iter_args(%[[V:.*]] = %[[A]], %[[E:.*]] = %[[D]])
  // CHECK-NEXT: %[[Z:.*]] = mica.select_weight [@w2, @w4, @w5, @w6, @w8, @w9, @w13, @w15][%[[M]]]
  // CHECK-NEXT: %[[FAR:.*]]:2 = func.call @far(%[[V]], %[[E]], %[[M]], %[[Z]], %[[SHARED]])
  // CHECK-NEXT: scf.yield %[[FAR]]#0, %[[FAR]]#1
  // CHECK-NEXT: }
  // CHECK-NEXT: scf.yield %[[B]]#0, %[[B]]#1
  // CHECK-NEXT: }
  // CHECK-NEXT: return %[[R]]#0, %[[R]]#1
  %shared = mica.get_weight @shared : !w
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %4 = arith.constant 4 : index
  %5 = arith.constant 5 : index
  %6 = arith.constant 6 : index
  %7 = arith.constant 7 : index
  %8 = arith.constant 8 : index
  %9 = arith.constant 9 : index
  %10 = arith.constant 10 : index
  %11 = arith.constant 11 : index
  %12 = arith.constant 12 : index
  %13 = arith.constant 13 : index
  %14 = arith.constant 14 : index
  %15 = arith.constant 15 : index
  %w0 = mica.get_weight @w0 : !w
  %x1 = call @near(%x0, %0, %w0) : (!x, index, !w) -> !x
  %w1 = mica.get_weight @w1 : !w
  %x2 = call @near(%x1, %1, %w1) : (!x, index, !w) -> !x
  %w2 = mica.get_weight @w2 : !w
  %x3, %c1 = call @far(%x2, %c0, %0, %w2, %shared) : (!x, !cache, index, !w, !w) -> (!x, !cache)
  %w3 = mica.get_weight @w3 : !w
  %x4 = call @near(%x3, %3, %w3) : (!x, index, !w) -> !x
  %w4 = mica.get_weight @w4 : !w
  %x5, %c2 = call @far(%x4, %c1, %1, %w4, %shared) : (!x, !cache, index, !w, !w) -> (!x, !cache)
  %w5 = mica.get_weight @w5 : !w
  %x6, %c3 = call @far(%x5, %c2, %2, %w5, %shared) : (!x, !cache, index, !w, !w) -> (!x, !cache)
  %w6 = mica.get_weight @w6 : !w
  %x7, %c4 = call @far(%x6, %c3, %3, %w6, %shared) : (!x, !cache, index, !w, !w) -> (!x, !cache)
  %w7 = mica.get_weight @w7 : !w
  %x8 = call @near(%x7, %7, %w7) : (!x, index, !w) -> !x
  %w8 = mica.get_weight @w8 : !w
  %x9, %c5 = call @far(%x8, %c4, %4, %w8, %shared) : (!x, !cache, index, !w, !w) -> (!x, !cache)
  %w9 = mica.get_weight @w9 : !w
  %x10, %c6 = call @far(%x9, %c5, %5, %w9, %shared) : (!x, !cache, index, !w, !w) -> (!x, !cache)
  %w10 = mica.get_weight @w10 : !w
  %x11 = call @near(%x10, %10, %w10) : (!x, index, !w) -> !x
  %w11 = mica.get_weight @w11 : !w
  %x12 = call @near(%x11, %11, %w11) : (!x, index, !w) -> !x
  %w12 = mica.get_weight @w12 : !w
  %x13 = call @near(%x12, %12, %w12) : (!x, index, !w) -> !x
  %w13 = mica.get_weight @w13 : !w
  %x14, %c7 = call @far(%x13, %c6, %6, %w13, %shared) : (!x, !cache, index, !w, !w) -> (!x, !cache)
  %w14 = mica.get_weight @w14 : !w
  %x15 = call @near(%x14, %14, %w14) : (!x, index, !w) -> !x
  %w15 = mica.get_weight @w15 : !w
  %x16, %c8 = call @far(%x15, %c7, %7, %w15, %shared) : (!x, !cache, index, !w, !w) -> (!x, !cache)
  return %x16, %c8 : !x, !cache
}

// -----

!x = tensor<?x32xf32>
func.func private @a(%x: !x, %layer: index) -> !x {
  return %x : !x
}
func.func private @b(%x: !x, %layer: index) -> !x {
  return %x : !x
}
func.func private @c(%x: !x, %layer: index) -> !x {
  return %x : !x
}
func.func private @both(%x: !x, %z: !x, %layer: index) -> !x

// CHECK-LABEL: func @three_functions
// CHECK: scf.for
// CHECK-NOT: call
// CHECK: scf.for
// CHECK-NOT: call
// CHECK: call @a
// CHECK-NOT: call
// CHECK: scf.for
// CHECK-NOT: call
// CHECK: call @b
// CHECK-NOT: call
// CHECK: scf.for
// CHECK-NOT: call
// CHECK: call @c
// CHECK-NOT: call
func.func @three_functions(%x0: !x, %n: index) -> !x {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %4 = arith.constant 4 : index
  %5 = arith.constant 5 : index
  %6 = arith.constant 6 : index
  %7 = arith.constant 7 : index
  %8 = arith.constant 8 : index
  %9 = arith.constant 9 : index
  %10 = arith.constant 10 : index
  %11 = arith.constant 11 : index
  %12 = arith.constant 12 : index
  %13 = arith.constant 13 : index
  %14 = arith.constant 14 : index
  %15 = arith.constant 15 : index
  %x1 = call @a(%x0, %0) : (!x, index) -> !x
  %x2 = call @b(%x1, %1) : (!x, index) -> !x
  %x3 = call @c(%x2, %2) : (!x, index) -> !x
  %x4 = call @a(%x3, %3) : (!x, index) -> !x
  %x5 = call @c(%x4, %4) : (!x, index) -> !x
  %x6 = call @b(%x5, %5) : (!x, index) -> !x
  %x7 = call @b(%x6, %6) : (!x, index) -> !x
  %x8 = call @a(%x7, %7) : (!x, index) -> !x
  %x9 = call @c(%x8, %8) : (!x, index) -> !x
  %x10 = call @a(%x9, %9) : (!x, index) -> !x
  %x11 = call @b(%x10, %10) : (!x, index) -> !x
  %x12 = call @c(%x11, %11) : (!x, index) -> !x
  %x13 = call @c(%x12, %12) : (!x, index) -> !x
  %x14 = call @a(%x13, %13) : (!x, index) -> !x
  %x15 = call @b(%x14, %14) : (!x, index) -> !x
  %x16 = call @a(%x15, %15) : (!x, index) -> !x
  return %x16 : !x
}

// One layer type with irregular layer indices.
// CHECK-LABEL: func @numbers_in_no_order
// CHECK-NOT: call
// CHECK: scf.for
// CHECK-NOT: call
// CHECK: scf.for
// CHECK-NEXT: %[[N:.*]] = mica.index_table [3, 1, 4, 9, 5, 2, 6][
// CHECK-NEXT: call @a(%{{.*}}, %[[N]])
// CHECK-NOT: call
func.func @numbers_in_no_order(%x0: !x) -> !x {
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %4 = arith.constant 4 : index
  %5 = arith.constant 5 : index
  %6 = arith.constant 6 : index
  %9 = arith.constant 9 : index
  %x1 = call @a(%x0, %3) : (!x, index) -> !x
  %x2 = call @a(%x1, %1) : (!x, index) -> !x
  %x3 = call @a(%x2, %4) : (!x, index) -> !x
  %x4 = call @a(%x3, %9) : (!x, index) -> !x
  %x5 = call @a(%x4, %5) : (!x, index) -> !x
  %x6 = call @a(%x5, %2) : (!x, index) -> !x
  %x7 = call @a(%x6, %6) : (!x, index) -> !x
  return %x7 : !x
}

// Eight calls, of which only two consecutive ones become a loop.
// CHECK-LABEL: func @too_few_interleaved_calls
// CHECK-NOT: mica.index_table
func.func @too_few_interleaved_calls(%x0: !x, %n: index) -> !x {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %4 = arith.constant 4 : index
  %5 = arith.constant 5 : index
  %6 = arith.constant 6 : index
  %7 = arith.constant 7 : index
  %x1 = call @a(%x0, %0) : (!x, index) -> !x
  %x2 = call @b(%x1, %1) : (!x, index) -> !x
  %x3 = call @a(%x2, %2) : (!x, index) -> !x
  %x4 = call @a(%x3, %3) : (!x, index) -> !x
  %x5 = call @b(%x4, %4) : (!x, index) -> !x
  %x6 = call @b(%x5, %5) : (!x, index) -> !x
  %x7 = call @a(%x6, %6) : (!x, index) -> !x
  %x8 = call @b(%x7, %7) : (!x, index) -> !x
  return %x8 : !x
}

// CHECK-LABEL: func @strictly_alternating_calls
// CHECK-NOT: mica.index_table
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK-NOT: mica.index_table
func.func @strictly_alternating_calls(%x0: !x, %n: index) -> !x {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %4 = arith.constant 4 : index
  %5 = arith.constant 5 : index
  %6 = arith.constant 6 : index
  %7 = arith.constant 7 : index
  %8 = arith.constant 8 : index
  %9 = arith.constant 9 : index
  %10 = arith.constant 10 : index
  %11 = arith.constant 11 : index
  %12 = arith.constant 12 : index
  %13 = arith.constant 13 : index
  %14 = arith.constant 14 : index
  %15 = arith.constant 15 : index
  %x1 = call @a(%x0, %0) : (!x, index) -> !x
  %x2 = call @b(%x1, %1) : (!x, index) -> !x
  %x3 = call @a(%x2, %2) : (!x, index) -> !x
  %x4 = call @b(%x3, %3) : (!x, index) -> !x
  %x5 = call @a(%x4, %4) : (!x, index) -> !x
  %x6 = call @b(%x5, %5) : (!x, index) -> !x
  %x7 = call @a(%x6, %6) : (!x, index) -> !x
  %x8 = call @b(%x7, %7) : (!x, index) -> !x
  %x9 = call @a(%x8, %8) : (!x, index) -> !x
  %x10 = call @b(%x9, %9) : (!x, index) -> !x
  %x11 = call @a(%x10, %10) : (!x, index) -> !x
  %x12 = call @b(%x11, %11) : (!x, index) -> !x
  %x13 = call @a(%x12, %12) : (!x, index) -> !x
  %x14 = call @b(%x13, %13) : (!x, index) -> !x
  %x15 = call @a(%x14, %14) : (!x, index) -> !x
  %x16 = call @b(%x15, %15) : (!x, index) -> !x
  return %x16 : !x
}

// The result of call 16 is used after the last call: the loop ends there.
// CHECK-LABEL: func @result_used_after_loop
// CHECK: %[[R:.*]] = scf.for
// CHECK-NEXT: arith.addi
// CHECK-NEXT: mica.index_table [0, 2, 3, 4, 7, 8][
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[R]])
// CHECK: mica.add %[[R]],
func.func @result_used_after_loop(%x0: !x) -> !x {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %4 = arith.constant 4 : index
  %5 = arith.constant 5 : index
  %6 = arith.constant 6 : index
  %7 = arith.constant 7 : index
  %8 = arith.constant 8 : index
  %9 = arith.constant 9 : index
  %10 = arith.constant 10 : index
  %11 = arith.constant 11 : index
  %12 = arith.constant 12 : index
  %13 = arith.constant 13 : index
  %14 = arith.constant 14 : index
  %15 = arith.constant 15 : index
  %16 = arith.constant 16 : index
  %17 = arith.constant 17 : index
  %18 = arith.constant 18 : index
  %19 = arith.constant 19 : index
  %x1 = call @a(%x0, %0) : (!x, index) -> !x
  %x2 = call @a(%x1, %1) : (!x, index) -> !x
  %x3 = call @b(%x2, %2) : (!x, index) -> !x
  %x4 = call @a(%x3, %3) : (!x, index) -> !x
  %x5 = call @b(%x4, %4) : (!x, index) -> !x
  %x6 = call @b(%x5, %5) : (!x, index) -> !x
  %x7 = call @b(%x6, %6) : (!x, index) -> !x
  %x8 = call @a(%x7, %7) : (!x, index) -> !x
  %x9 = call @b(%x8, %8) : (!x, index) -> !x
  %x10 = call @b(%x9, %9) : (!x, index) -> !x
  %x11 = call @a(%x10, %10) : (!x, index) -> !x
  %x12 = call @a(%x11, %11) : (!x, index) -> !x
  %x13 = call @a(%x12, %12) : (!x, index) -> !x
  %x14 = call @b(%x13, %13) : (!x, index) -> !x
  %x15 = call @a(%x14, %14) : (!x, index) -> !x
  %x16 = call @b(%x15, %15) : (!x, index) -> !x
  %x17 = call @b(%x16, %16) : (!x, index) -> !x
  %x18 = call @a(%x17, %17) : (!x, index) -> !x
  %x19 = call @b(%x18, %18) : (!x, index) -> !x
  %x20 = call @a(%x19, %19) : (!x, index) -> !x
  %sum = mica.add %x16, %x20 : !x
  return %sum : !x
}

// An operand of the calls of @c is computed between the first calls, which is too late for a loop that begins with them.
// The first two calls still become a loop.
// CHECK-LABEL: func @no_operand_made_between
// CHECK-NOT: mica.index_table
// CHECK: scf.for
// CHECK-NEXT: call @a
// CHECK-NEXT: scf.yield
// CHECK-NOT: mica.index_table
func.func @no_operand_made_between(%x0: !x, %n: index) -> !x {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %4 = arith.constant 4 : index
  %5 = arith.constant 5 : index
  %6 = arith.constant 6 : index
  %7 = arith.constant 7 : index
  %8 = arith.constant 8 : index
  %9 = arith.constant 9 : index
  %10 = arith.constant 10 : index
  %11 = arith.constant 11 : index
  %12 = arith.constant 12 : index
  %13 = arith.constant 13 : index
  %14 = arith.constant 14 : index
  %15 = arith.constant 15 : index
  %16 = arith.constant 16 : index
  %x1 = call @a(%x0, %0) : (!x, index) -> !x
  %x2 = call @a(%x1, %1) : (!x, index) -> !x
  %x3 = call @b(%x2, %2) : (!x, index) -> !x
  %x4 = call @a(%x3, %3) : (!x, index) -> !x
  %x5 = call @b(%x4, %4) : (!x, index) -> !x
  %x6 = call @b(%x5, %5) : (!x, index) -> !x
  %x7 = call @b(%x6, %6) : (!x, index) -> !x
  %x8 = call @a(%x7, %7) : (!x, index) -> !x
  %x9 = call @b(%x8, %8) : (!x, index) -> !x
  %x10 = call @b(%x9, %9) : (!x, index) -> !x
  %m = arith.addi %n, %n : index
  %x11 = call @c(%x10, %m) : (!x, index) -> !x
  %x12 = call @a(%x11, %11) : (!x, index) -> !x
  %x13 = call @c(%x12, %m) : (!x, index) -> !x
  %x14 = call @a(%x13, %13) : (!x, index) -> !x
  %x15 = call @b(%x14, %14) : (!x, index) -> !x
  %x16 = call @c(%x15, %m) : (!x, index) -> !x
  %x17 = call @b(%x16, %16) : (!x, index) -> !x
  return %x17 : !x
}

// Some calls use the result of the call before the previous one.
// CHECK-LABEL: func @no_second_stream
// CHECK-NOT: mica.index_table
func.func @no_second_stream(%x0: !x, %n: index) -> !x {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  %4 = arith.constant 4 : index
  %5 = arith.constant 5 : index
  %6 = arith.constant 6 : index
  %7 = arith.constant 7 : index
  %8 = arith.constant 8 : index
  %9 = arith.constant 9 : index
  %10 = arith.constant 10 : index
  %11 = arith.constant 11 : index
  %12 = arith.constant 12 : index
  %13 = arith.constant 13 : index
  %14 = arith.constant 14 : index
  %15 = arith.constant 15 : index
  %16 = arith.constant 16 : index
  %17 = arith.constant 17 : index
  %18 = arith.constant 18 : index
  %19 = arith.constant 19 : index
  %x1 = call @a(%x0, %0) : (!x, index) -> !x
  %x2 = call @b(%x1, %1) : (!x, index) -> !x
  %x3 = call @both(%x2, %x1, %2) : (!x, !x, index) -> !x
  %x4 = call @a(%x3, %3) : (!x, index) -> !x
  %x5 = call @a(%x4, %4) : (!x, index) -> !x
  %x6 = call @b(%x5, %5) : (!x, index) -> !x
  %x7 = call @both(%x6, %x5, %6) : (!x, !x, index) -> !x
  %x8 = call @b(%x7, %7) : (!x, index) -> !x
  %x9 = call @a(%x8, %8) : (!x, index) -> !x
  %x10 = call @both(%x9, %x8, %9) : (!x, !x, index) -> !x
  %x11 = call @a(%x10, %10) : (!x, index) -> !x
  %x12 = call @b(%x11, %11) : (!x, index) -> !x
  %x13 = call @both(%x12, %x11, %12) : (!x, !x, index) -> !x
  %x14 = call @both(%x13, %x12, %13) : (!x, !x, index) -> !x
  %x15 = call @a(%x14, %14) : (!x, index) -> !x
  %x16 = call @b(%x15, %15) : (!x, index) -> !x
  %x17 = call @a(%x16, %16) : (!x, index) -> !x
  %x18 = call @b(%x17, %17) : (!x, index) -> !x
  %x19 = call @both(%x18, %x17, %18) : (!x, !x, index) -> !x
  %x20 = call @a(%x19, %19) : (!x, index) -> !x
  return %x20 : !x
}


