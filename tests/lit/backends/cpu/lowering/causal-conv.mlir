// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s

// A task is a block of 64 channels; the state, a ring of 64 slots, is an output.
!state = !mica.rolling_state<10 x 100 x f32 window(3)>

// CHECK-LABEL: func.func private @conv
// CHECK-SAME: %[[X:.*]]: tensor<?x100xf32>, %[[W:.*]]: tensor<100x3xf32>, %[[STATE:.*]]: tensor<10x?x64x100xf32>
// CHECK: %[[TASKS:.*]] = arith.constant 2 : index
// CHECK: exec.launch @causal_conv1d tasks(%[[TASKS]]) ins(%[[X]], %[[W]], {{.*}}) outs(%{{.*}}, %[[STATE]] : tensor<?x100xf32>, tensor<10x?x64x100xf32>)
func.func private @conv(%x: tensor<?x100xf32>, %w: tensor<100x3xf32>, %state: !state, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x100xf32>, !state) {
  %y, %next = mica.causal_conv1d %x, %w, %state[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>)
      : tensor<?x100xf32>, tensor<100x3xf32>, !state
  return %y, %next : tensor<?x100xf32>, !state
}

// The row is written to the ring before the taps of earlier positions are read.
// CHECK-LABEL: func.func private @causal_conv1d(
// CHECK-SAME: cost = #exec.cost<{{.*}}row_cache_bytes = 1200
// CHECK: vector.maskedstore %arg8[
// CHECK-COUNT-2: vector.maskedload %arg8[
// CHECK: vector.maskedstore %arg7[
