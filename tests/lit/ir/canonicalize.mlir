// RUN: mica-opt %s --canonicalize --split-input-file | FileCheck %s

// rope over no elements => x.
// CHECK-LABEL: @rope_of_nothing
func.func @rope_of_nothing(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) -> tensor<?x2x4xf32> {
  // CHECK-NOT: mica.rope
  // CHECK: return %arg0
  %y = mica.rope %x, %p half theta(1.0e+04) rotary_dim(0) : tensor<?x2x4xf32>, tensor<?xi32>
  return %y : tensor<?x2x4xf32>
}

// CHECK-LABEL: @no_fold_of_partial_rope
func.func @no_fold_of_partial_rope(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) -> tensor<?x2x4xf32> {
  // CHECK: %[[Y:.*]] = mica.rope
  // CHECK: return %[[Y]]
  %y = mica.rope %x, %p half theta(1.0e+04) rotary_dim(2) : tensor<?x2x4xf32>, tensor<?xi32>
  return %y : tensor<?x2x4xf32>
}

// -----

// repeat_kv by 1 => x.
// CHECK-LABEL: @repeat_once
func.func @repeat_once(%x: tensor<?x?x2x4xf32>) -> tensor<?x?x2x4xf32> {
  // CHECK-NOT: mica.repeat_kv
  // CHECK: return %arg0
  %y = mica.repeat_kv %x times 1 : tensor<?x?x2x4xf32> -> tensor<?x?x2x4xf32>
  return %y : tensor<?x?x2x4xf32>
}

// CHECK-LABEL: @no_fold_of_repeat_twice
func.func @no_fold_of_repeat_twice(%x: tensor<?x?x2x4xf32>) -> tensor<?x?x4x4xf32> {
  // CHECK: %[[Y:.*]] = mica.repeat_kv %arg0 times 2
  // CHECK: return %[[Y]]
  %y = mica.repeat_kv %x times 2 : tensor<?x?x2x4xf32> -> tensor<?x?x4x4xf32>
  return %y : tensor<?x?x4x4xf32>
}

// The types must agree: otherwise the fold would change the type of the result.
// CHECK-LABEL: @no_fold_of_repeat_with_another_type
func.func @no_fold_of_repeat_with_another_type(%x: tensor<1x5x2x4xf32>) -> tensor<?x?x2x4xf32> {
  // CHECK: %[[Y:.*]] = mica.repeat_kv %arg0 times 1
  // CHECK: return %[[Y]]
  %y = mica.repeat_kv %x times 1 : tensor<1x5x2x4xf32> -> tensor<?x?x2x4xf32>
  return %y : tensor<?x?x2x4xf32>
}

// -----

// cast to the same type => x.
// CHECK-LABEL: @cast_of_nothing
func.func @cast_of_nothing(%x: tensor<?x4xbf16>) -> tensor<?x4xbf16> {
  // CHECK-NOT: mica.cast
  // CHECK: return %arg0
  %y = mica.cast %x : tensor<?x4xbf16> to tensor<?x4xbf16>
  return %y : tensor<?x4xbf16>
}

// A cast to a narrower type and back is not the identity, because it rounds.
// CHECK-LABEL: @no_fold_of_rounding
func.func @no_fold_of_rounding(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // CHECK: mica.cast %arg0 : tensor<?x4xf32> to tensor<?x4xbf16>
  // CHECK: mica.cast {{.*}} : tensor<?x4xbf16> to tensor<?x4xf32>
  %y = mica.cast %x : tensor<?x4xf32> to tensor<?x4xbf16>
  %z = mica.cast %y : tensor<?x4xbf16> to tensor<?x4xf32>
  return %z : tensor<?x4xf32>
}

// -----

// split_heads(merge_heads(x)) => x and merge_heads(split_heads(x)) => x.
// CHECK-LABEL: @heads_there_and_back
func.func @heads_there_and_back(%h: tensor<?x2x4xf32>, %x: tensor<?x8xf32>) -> (tensor<?x2x4xf32>, tensor<?x8xf32>) {
  // CHECK-NOT: mica
  // CHECK: return %arg0, %arg1
  %0 = mica.merge_heads %h : tensor<?x2x4xf32> to tensor<?x8xf32>
  %1 = mica.split_heads %0 : tensor<?x8xf32> to tensor<?x2x4xf32>
  %2 = mica.split_heads %x : tensor<?x8xf32> to tensor<?x2x4xf32>
  %3 = mica.merge_heads %2 : tensor<?x2x4xf32> to tensor<?x8xf32>
  return %1, %3 : tensor<?x2x4xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: @no_fold_of_other_heads
func.func @no_fold_of_other_heads(%h: tensor<?x2x4xf32>) -> tensor<?x4x2xf32> {
  // CHECK: mica.merge_heads
  // CHECK: mica.split_heads
  %0 = mica.merge_heads %h : tensor<?x2x4xf32> to tensor<?x8xf32>
  %1 = mica.split_heads %0 : tensor<?x8xf32> to tensor<?x4x2xf32>
  return %1 : tensor<?x4x2xf32>
}

// -----

// Unused pure ops are removed.
// CHECK-LABEL: @unused
func.func @unused(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // CHECK-NOT: mica.silu
  // CHECK: return %arg0
  %0 = mica.silu %x : tensor<?x4xf32>
  return %x : tensor<?x4xf32>
}
