// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s

// A task is a head; the state is an output: per head two matrices [16, 12], 64 slots of 16 keys, 12 values and a decay.
!state = !mica.recurrent_state<10 x 8 x 16 x 12 x f32>

// CHECK-LABEL: func.func private @scan
// CHECK-SAME: %[[Q:.*]]: tensor<?x2x16xf32>, %[[V:.*]]: tensor<?x8x12xf32>, %[[D:.*]]: tensor<?x8xf32>, %[[STATE:.*]]: tensor<10x?x8x2240xf32>
// CHECK: %[[TASKS:.*]] = arith.constant 8 : index
// CHECK: exec.launch @linear_attention tasks(%[[TASKS]]) ins(%[[Q]], %[[Q]], %[[V]], %[[D]], {{.*}}) outs(%{{.*}}, %[[STATE]] : tensor<?x8x12xf32>, tensor<10x?x8x2240xf32>)
func.func private @scan(%q: tensor<?x2x16xf32>, %v: tensor<?x8x12xf32>, %d: tensor<?x8xf32>, %state: !state, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x8x12xf32>, !state) {
  %y, %next = mica.linear_attention %q, %q, %v decay(%d : tensor<?x8xf32>), %state[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>)
      : tensor<?x2x16xf32>, tensor<?x8x12xf32>, !state
  return %y, %next : tensor<?x8x12xf32>, !state
}

// With the delta rule, betas follow the decays; it has a separate kernel.
// CHECK-LABEL: func.func private @delta
// CHECK: exec.launch @linear_attention_0 tasks(%{{.*}}) ins(%{{.*}}, %{{.*}}, %{{.*}}, %[[SHARES:[^,]*]], %[[SHARES]], {{.*}} : tensor<?x2x16xf32>, {{.*}}) outs(%{{.*}}, %{{.*}} : tensor<?x8x12xf32>, tensor<10x?x8x2240xf32>)
func.func private @delta(%q: tensor<?x2x16xf32>, %v: tensor<?x8x12xf32>, %d: tensor<?x8xf32>, %state: !state, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x8x12xf32>, !state) {
  %y, %next = mica.linear_attention %q, %q, %v decay(%d : tensor<?x8xf32>) beta(%d : tensor<?x8xf32>), %state[%layer]
      at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x16xf32>, tensor<?x8x12xf32>, !state
  return %y, %next : tensor<?x8x12xf32>, !state
}

// A matrix is computed only at multiples of 32 positions; the row is written to the ring before it is read.
// CHECK-LABEL: func.func private @linear_attention(
// CHECK-SAME: cost = #exec.cost<{{.*}}row_cache_bytes = 20480
// CHECK: scf.if
// CHECK: vector.maskedstore %arg10[
// CHECK: vector.store %{{.*}}, %arg10[
// CHECK: vector.maskedstore %arg10[
// CHECK: memref.store %{{.*}}, %arg10[
// CHECK: vector.maskedstore %arg9[
