// RUN: mica-opt %s | mica-opt | FileCheck %s
// RUN: mica-opt %s --mlir-print-op-generic | mica-opt | FileCheck %s

!state = !mica.rolling_state<10 x 64 x f32 window(3)>

// CHECK-LABEL: func.func @causal_conv1d
// CHECK-SAME: !mica.rolling_state<10 x 64 x f32 window(3)>
func.func @causal_conv1d(%x: tensor<?x64xf32>, %weight: tensor<64x3xbf16>, %bias: tensor<64xf32>, %state: !state,
    %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !state {
  // CHECK: mica.causal_conv1d %{{.*}}, %{{.*}}, %{{.*}}[%{{.*}}] at(%{{.*}}, %{{.*}} : tensor<?xi32>, tensor<?xi32>) : tensor<?x64xf32>, tensor<64x3xbf16>, <10 x 64 x f32 window(3)>
  %y, %next = mica.causal_conv1d %x, %weight, %state[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>)
      : tensor<?x64xf32>, tensor<64x3xbf16>, !state
  // CHECK: mica.causal_conv1d %{{.*}}, %{{.*}}, %{{.*}}[%{{.*}}] at(%{{.*}}, %{{.*}} : tensor<?xi32>, tensor<?xi32>) bias(%{{.*}} : tensor<64xf32>) : tensor<?x64xf32>, tensor<64x3xbf16>, <10 x 64 x f32 window(3)>
  %z, %last = mica.causal_conv1d %y, %weight, %next[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>)
      bias(%bias : tensor<64xf32>) : tensor<?x64xf32>, tensor<64x3xbf16>, !state
  return %last : !state
}
