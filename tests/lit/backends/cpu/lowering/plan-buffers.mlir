// RUN: mica-opt %s --cpu-plan-buffers --split-input-file --verify-diagnostics | FileCheck %s

// The layer's buffers are after those of the entry. %a and %c have disjoint lifetimes and share memory; %b overlaps with both.
// 64 floats per row are 256 bytes, 16 are 64: 320 for the layer, 64 for the entry; 256 fixed bytes for %t.
// CHECK: mica.scratch_fixed = 256 : i64, mica.scratch_per_output = 0 : i64, mica.scratch_per_row = 384 : i64
module {
  func.func private @kernel(%begin: index, %end: index, %x: memref<?x16xf32>, %y: memref<?x64xf32>) { return }
  func.func private @back(%begin: index, %end: index, %x: memref<?x64xf32>, %y: memref<?x16xf32>) { return }
  func.func private @fixed(%begin: index, %end: index, %x: memref<?x16xf32>, %y: memref<60xf32>) { return }
  // CHECK-LABEL: func.func private @layer
  // CHECK-SAME: %[[SCRATCH:[a-z0-9]+]]: memref<?xi8>)
  func.func private @layer(%x: memref<?x16xf32>) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %rows = memref.dim %x, %zero : memref<?x16xf32>
    // CHECK: memref.view %[[SCRATCH]][%[[A:.*]]][%{{.*}}] : memref<?xi8> to memref<?x64xf32>
    %a = memref.alloc(%rows) : memref<?x64xf32>
    exec.launch @kernel tasks(%one) ins(%x : memref<?x16xf32>) outs(%a : memref<?x64xf32>)
    // CHECK: memref.view %[[SCRATCH]][%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?x16xf32>
    %b = memref.alloc(%rows) : memref<?x16xf32>
    exec.launch @back tasks(%one) ins(%a : memref<?x64xf32>) outs(%b : memref<?x16xf32>)
    %c = memref.alloc(%rows) : memref<?x64xf32>
    exec.launch @kernel tasks(%one) ins(%b : memref<?x16xf32>) outs(%c : memref<?x64xf32>)
    exec.launch @back tasks(%one) ins(%c : memref<?x64xf32>) outs(%x : memref<?x16xf32>)
    %t = memref.alloc() : memref<60xf32>
    exec.launch @fixed tasks(%one) ins(%x : memref<?x16xf32>) outs(%t : memref<60xf32>)
    return
  }
  // CHECK-LABEL: func.func @main
  func.func @main(%tokens: memref<?xi32> {mica.role = "tokens"}, %weights: memref<?xi8> {mica.role = "weights"},
      %scratch: memref<?xi8> {mica.role = "scratch"}, %logits: memref<?x8xf32> {mica.role = "logits"}) {
    %zero = arith.constant 0 : index
    %rows = memref.dim %tokens, %zero : memref<?xi32>
    %x = memref.alloc(%rows) : memref<?x16xf32>
    // CHECK: %[[REST:.*]] = memref.view %{{.*}}[%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?xi8>
    // CHECK: call @layer(%{{.*}}, %[[REST]])
    call @layer(%x) : (memref<?x16xf32>) -> ()
    return
  }
}

// -----

// Two calls per iteration: the first call's result reuses the buffer of its operand after the operand's last use. If the
// operand is used later, the result needs a separate buffer.
// CHECK: mica.scratch_fixed = 0 : i64, mica.scratch_per_output = 0 : i64, mica.scratch_per_row = 128 : i64
module {
  func.func private @kernel(%begin: index, %end: index, %x: memref<?x16xf32>, %y: memref<?x16xf32>) { return }
  func.func private @layer(%x: memref<?x16xf32>) -> memref<?x16xf32> {
    %zero = arith.constant 0 : index
    %rows = memref.dim %x, %zero : memref<?x16xf32>
    %y = memref.alloc(%rows) : memref<?x16xf32>
    exec.launch @kernel tasks(%rows) ins(%x : memref<?x16xf32>) outs(%y : memref<?x16xf32>)
    return %y : memref<?x16xf32>
  }
  // CHECK-LABEL: func.func @turns
  func.func @turns(%tokens: memref<?xi32> {mica.role = "tokens"}, %n: index,
      %weights: memref<?xi8> {mica.role = "weights"}, %scratch: memref<?xi8> {mica.role = "scratch"},
      %logits: memref<?x8xf32> {mica.role = "logits"}) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %rows = memref.dim %tokens, %zero : memref<?xi32>
    // CHECK: %[[X:.*]] = memref.view %{{.*}} : memref<?xi8> to memref<?x16xf32>
    %x = memref.alloc(%rows) : memref<?x16xf32>
    // CHECK: scf.for
    scf.for %i = %zero to %n step %one {
      // CHECK: %[[A:.*]] = func.call @layer(%[[X]],
      // CHECK-NEXT: memref.copy %[[A]], %[[X]]
      %a = func.call @layer(%x) : (memref<?x16xf32>) -> memref<?x16xf32>
      // CHECK: %[[B:.*]] = func.call @layer(%[[X]],
      // CHECK-NEXT: memref.copy %[[B]], %[[X]]
      %b = func.call @layer(%a) : (memref<?x16xf32>) -> memref<?x16xf32>
      memref.copy %b, %x : memref<?x16xf32> to memref<?x16xf32>
    }
    return
  }
}

// -----

module {
  func.func private @layer(%x: memref<?x16xf32>) -> memref<?x16xf32> { return %x : memref<?x16xf32> }
  func.func @read_again(%tokens: memref<?xi32> {mica.role = "tokens"}, %n: index,
      %weights: memref<?xi8> {mica.role = "weights"}, %scratch: memref<?xi8> {mica.role = "scratch"},
      %logits: memref<?x8xf32> {mica.role = "logits"}) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %rows = memref.dim %tokens, %zero : memref<?xi32>
    %x = memref.alloc(%rows) : memref<?x16xf32>
    scf.for %i = %zero to %n step %one {
      // expected-error @+1 {{allocates inside a loop or branch, which is not supported}}
      %a = func.call @layer(%x) : (memref<?x16xf32>) -> memref<?x16xf32>
      %c = func.call @layer(%x) : (memref<?x16xf32>) -> memref<?x16xf32>
      %b = func.call @layer(%a) : (memref<?x16xf32>) -> memref<?x16xf32>
      memref.copy %b, %x : memref<?x16xf32> to memref<?x16xf32>
    }
    return
  }
}

// -----

module {
  func.func @nested(%tokens: memref<?xi32> {mica.role = "tokens"}, %n: index,
      %weights: memref<?xi8> {mica.role = "weights"}, %scratch: memref<?xi8> {mica.role = "scratch"},
      %logits: memref<?x8xf32> {mica.role = "logits"}) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    scf.for %i = %zero to %n step %one {
      // expected-error @+1 {{allocates inside a loop or branch, which is not supported}}
      %x = memref.alloc(%n) : memref<?x16xf32>
    }
    return
  }
}

// -----

module {
  func.func @quadratic(%tokens: memref<?xi32> {mica.role = "tokens"}, %n: index,
      %weights: memref<?xi8> {mica.role = "weights"}, %scratch: memref<?xi8> {mica.role = "scratch"},
      %logits: memref<?x8xf32> {mica.role = "logits"}) {
    // expected-error @+1 {{allocates a buffer whose size is not linear in the number of rows}}
    %x = memref.alloc(%n, %n) : memref<?x?xf32>
    return
  }
}

// -----

module {
  // expected-error @+1 {{has no argument that determines the number of rows}}
  func.func @no_rows(%n: index, %weights: memref<?xi8> {mica.role = "weights"},
      %scratch: memref<?xi8> {mica.role = "scratch"}, %logits: memref<8xf32>) {
    %x = memref.alloc(%n) : memref<?x16xf32>
    return
  }
}

// -----

// expected-error @+1 {{@no_scratch has no argument with mica.role = "scratch" for buffers}}
func.func @no_scratch(%tokens: memref<?xi32> {mica.role = "tokens"}, %weights: memref<?xi8> {mica.role = "weights"}) {
  return
}

// -----

// The number of rows is the size of an entry's vectors of rows, at any index; outputs do not count.
// CHECK-LABEL: func.func @rows_by_role
// CHECK-SAME: %[[POSITIONS:[a-z0-9]+]]: memref<?xi32> {mica.role = "positions"}
// CHECK: %[[ROWS:.*]] = memref.dim %[[POSITIONS]]
// CHECK: arith.muli %[[ROWS]]
func.func @rows_by_role(%logits: memref<?x16xf32> {mica.role = "logits"}, %scratch: memref<?xi8> {mica.role = "scratch"},
    %logit_indices: memref<?xi32> {mica.role = "logit_indices"}, %positions: memref<?xi32> {mica.role = "positions"}, %n: index) {
  %x = memref.alloc(%n) : memref<?x16xf32>
  %y = memref.alloc() : memref<16xf32>
  return
}

// -----

// Buffers of rows with logits follow those of all rows: %h and %p, and the gathered %q, which is as long as %p. Fixed buffers
// and the memory of layers follow them.
// CHECK: mica.scratch_fixed = 64 : i64, mica.scratch_per_output = 192 : i64, mica.scratch_per_row = 128 : i64
module {
  func.func private @kernel(%begin: index, %end: index, %x: memref<?x16xf32>, %y: memref<?x16xf32>) { return }
  func.func private @layer(%x: memref<?x16xf32>) {
    %zero = arith.constant 0 : index
    %rows = memref.dim %x, %zero : memref<?x16xf32>
    %y = memref.alloc(%rows) : memref<?x16xf32>
    exec.launch @kernel tasks(%rows) ins(%x : memref<?x16xf32>) outs(%y : memref<?x16xf32>)
    return
  }
  // CHECK-LABEL: func.func @outputs
  // CHECK-SAME: %[[TOKENS:[a-z0-9]+]]: memref<?xi32> {mica.role = "tokens"}, %[[INDICES:[a-z0-9]+]]: memref<?xi32>
  // CHECK-SAME: %[[SCRATCH:[a-z0-9]+]]: memref<?xi8> {mica.role = "scratch"}
  // CHECK: %[[ROWS:.*]] = memref.dim %[[TOKENS]]
  // CHECK: %[[START:.*]] = arith.muli %[[ROWS]], %{{.*}} : index
  // CHECK: %[[OUTPUTS:.*]] = memref.dim %[[INDICES]]
  // CHECK: %[[SIZE:.*]] = arith.muli %[[OUTPUTS]], %{{.*}} : index
  // CHECK: %[[FIXED:.*]] = arith.addi %[[START]], %[[SIZE]] : index
  func.func @outputs(%tokens: memref<?xi32> {mica.role = "tokens"}, %indices: memref<?xi32> {mica.role = "logit_indices"},
      %weights: memref<?xi8> {mica.role = "weights"}, %scratch: memref<?xi8> {mica.role = "scratch"},
      %logits: memref<?x16xf32> {mica.role = "logits"}) {
    %zero = arith.constant 0 : index
    %rows = memref.dim %tokens, %zero : memref<?xi32>
    %x = memref.alloc(%rows) : memref<?x16xf32>
    call @layer(%x) : (memref<?x16xf32>) -> ()
    %outputs = memref.dim %indices, %zero : memref<?xi32>
    // CHECK: %[[FIRST:.*]] = arith.muli %[[OUTPUTS]], %{{.*}} : index
    // CHECK: %[[PLACE:.*]] = arith.addi %[[START]], %[[FIRST]] : index
    // CHECK: memref.view %[[SCRATCH]][%[[PLACE]]]
    %h = memref.alloc(%outputs) : memref<?x16xf32>
    exec.launch @kernel tasks(%outputs) ins(%x : memref<?x16xf32>) outs(%h : memref<?x16xf32>)
    %p = memref.alloc(%outputs) : memref<?x16xf32>
    exec.launch @kernel tasks(%outputs) ins(%h : memref<?x16xf32>) outs(%p : memref<?x16xf32>)
    %same = memref.dim %p, %zero : memref<?x16xf32>
    %q = memref.alloc(%same) : memref<?x16xf32>
    exec.launch @kernel tasks(%outputs) ins(%h : memref<?x16xf32>) outs(%q : memref<?x16xf32>)
    exec.launch @kernel tasks(%outputs) ins(%p : memref<?x16xf32>) outs(%q : memref<?x16xf32>)
    // CHECK: %[[LAST:.*]] = arith.addi %[[FIXED]],
    // CHECK: memref.view %[[SCRATCH]][%[[LAST]]]
    %t = memref.alloc() : memref<16xf32>
    exec.launch @kernel tasks(%outputs) ins(%q : memref<?x16xf32>) outs(%logits : memref<?x16xf32>)
    return
  }
}

// -----

// A call's result is in memory that the next call uses for its buffers: it is copied first. The second call's result is
// already copied, before any other call.
module {
  func.func private @norm(%x: memref<?x16xf32>) -> memref<?x16xf32> {
    %zero = arith.constant 0 : index
    %rows = memref.dim %x, %zero : memref<?x16xf32>
    %y = memref.alloc(%rows) : memref<?x16xf32>
    return %y : memref<?x16xf32>
  }
  // CHECK-LABEL: func.func @results
  // CHECK-SAME: %[[TOKENS:.*]]: memref<?x16xf32>, %{{.*}}: memref<?xi8> {mica.role = "weights"},
  // CHECK-SAME: %[[MEMORY:.*]]: memref<?xi8> {mica.role = "scratch"}, %[[LOGITS:.*]]: memref<?x16xf32> {mica.role = "logits"})
  // CHECK: %[[A:.*]] = call @norm(%[[TOKENS]],
  // CHECK: %[[OWN:.*]] = memref.view %[[MEMORY]]
  // CHECK: memref.copy %[[A]], %[[OWN]]
  // CHECK: %[[B:.*]] = call @norm(%[[OWN]],
  // CHECK-NOT: memref.view
  // CHECK: memref.copy %[[B]], %[[LOGITS]]
  func.func @results(%x: memref<?x16xf32>, %weights: memref<?xi8> {mica.role = "weights"},
      %scratch: memref<?xi8> {mica.role = "scratch"}, %logits: memref<?x16xf32> {mica.role = "logits"}) {
    %a = call @norm(%x) : (memref<?x16xf32>) -> memref<?x16xf32>
    %b = call @norm(%a) : (memref<?x16xf32>) -> memref<?x16xf32>
    memref.copy %b, %logits : memref<?x16xf32> to memref<?x16xf32>
    return
  }
}

// -----

// Copied, but only after a call that has overwritten it.
module {
  func.func private @norm(%x: memref<?x16xf32>) -> memref<?x16xf32> {
    return %x : memref<?x16xf32>
  }
  // CHECK-LABEL: func.func @late
  // CHECK: %[[A:.*]] = call @norm
  // CHECK: memref.copy %[[A]], %[[OWN:.*]] :
  // CHECK: call @norm
  // CHECK: memref.copy %[[OWN]], %{{.*}}
  func.func @late(%x: memref<?x16xf32>, %weights: memref<?xi8> {mica.role = "weights"},
      %scratch: memref<?xi8> {mica.role = "scratch"}, %logits: memref<?x16xf32> {mica.role = "logits"}) {
    %a = call @norm(%x) : (memref<?x16xf32>) -> memref<?x16xf32>
    %b = call @norm(%x) : (memref<?x16xf32>) -> memref<?x16xf32>
    memref.copy %a, %logits : memref<?x16xf32> to memref<?x16xf32>
    return
  }
}

// -----

// %a is still read after %x, which its call has read for the last time, is written: it cannot use the buffer of %x.
module {
  func.func private @layer(%x: memref<?x16xf32>, %z: memref<?x16xf32>) -> memref<?x16xf32> {
    return %x : memref<?x16xf32>
  }
  func.func @turns(%rows: index, %n: index, %weights: memref<?xi8> {mica.role = "weights"},
      %scratch: memref<?xi8> {mica.role = "scratch"}, %logits: memref<?x16xf32> {mica.role = "logits"}) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %x = memref.alloc(%rows) : memref<?x16xf32>
    %w = memref.alloc(%rows) : memref<?x16xf32>
    scf.for %i = %zero to %n step %one {
      // expected-error @+1 {{allocates inside a loop or branch, which is not supported}}
      %a = func.call @layer(%x, %w) : (memref<?x16xf32>, memref<?x16xf32>) -> memref<?x16xf32>
      %b = func.call @layer(%a, %w) : (memref<?x16xf32>, memref<?x16xf32>) -> memref<?x16xf32>
      memref.copy %b, %x : memref<?x16xf32> to memref<?x16xf32>
      memref.copy %a, %w : memref<?x16xf32> to memref<?x16xf32>
    }
    return
  }
}
