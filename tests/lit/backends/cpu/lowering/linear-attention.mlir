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

// For up to four heads, all runs of rows, whose length is counted. A matrix is computed only at multiples of 32 positions, for four
// keys at a time; the rows are written to the ring before they are read.
// CHECK-LABEL: func.func private @linear_attention(
// CHECK-SAME: cost = #exec.cost<{{.*}}row_cache_bytes = 20480, row_flops = 13312>
// CHECK: scf.for %{{.*}} = %arg0 to %arg1 step %[[HEADS:.*]] {
// CHECK: %[[LAST:.*]] = arith.minui %{{.*}}, %arg1
// CHECK: scf.while (%[[ROW:.*]] = %{{.*}})
// CHECK: %[[LENGTH:.*]] = scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (index)
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[LAST]]
// CHECK: scf.if
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK-COUNT-4: vector.maskedstore %arg10[
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[LENGTH]]
// CHECK: vector.store %{{.*}}, %arg10[
// CHECK: vector.maskedstore %arg10[
// CHECK: memref.store %{{.*}}, %arg10[
// The products with keys are computed by the first head of a group.
// CHECK: scf.if
// CHECK: memref.store %{{.*}}, %[[PRODUCTS:.*]][%{{.*}}] : memref<32x32xf32>
// CHECK: vector.load %[[PRODUCTS]]
// CHECK: vector.store %{{.*}}, %{{.*}} : memref<32x32xf32>, vector<16xf32>
// Numbers of the matrix and of the ring are loaded once for four rows.
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK: vector.maskedload %arg10[
// CHECK-COUNT-4: vector.fma
// CHECK-NEXT: scf.yield
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK: vector.maskedload %arg10[
// CHECK-COUNT-4: vector.fma
// CHECK-NEXT: scf.yield
// CHECK-COUNT-4: vector.maskedstore %arg9[
// The rest of a run, row by row.
// CHECK: vector.maskedstore %arg9[
// CHECK-NOT: vector.maskedstore %arg9[
// CHECK: return

// The delta rule stores the values of a row before the sums of later rows of the tile use them.
// CHECK-LABEL: func.func private @linear_attention_0(
// CHECK: arith.subf
// CHECK: vector.maskedstore %arg11[
// CHECK-COUNT-3: vector.fma
// CHECK: arith.subf
// CHECK: vector.maskedstore %arg11[
// CHECK-COUNT-2: vector.fma
// CHECK: arith.subf
// CHECK: vector.maskedstore %arg11[
// CHECK: vector.fma
// CHECK: arith.subf
// CHECK: vector.maskedstore %arg11[
// CHECK-COUNT-4: vector.maskedstore %arg10[
