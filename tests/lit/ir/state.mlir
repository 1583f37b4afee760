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

!matrices = !mica.recurrent_state<10 x 8 x 16 x 12 x f32>

// CHECK-LABEL: func.func @linear_attention
// CHECK-SAME: !mica.recurrent_state<10 x 8 x 16 x 12 x f32>
func.func @linear_attention(%q: tensor<?x2x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x8x12xf32>, %decay: tensor<?x8xf32>,
    %beta: tensor<?x8xf32>, %state: !matrices, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>) -> !matrices {
  // CHECK: mica.linear_attention %{{.*}}, %{{.*}}, %{{.*}} decay(%{{.*}} : tensor<?x8xf32>), %{{.*}}[%{{.*}}] at(%{{.*}}, %{{.*}} : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x16xf32>, tensor<?x8x12xf32>, <10 x 8 x 16 x 12 x f32>
  %y, %next = mica.linear_attention %q, %k, %v decay(%decay : tensor<?x8xf32>), %state[%layer]
      at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x16xf32>, tensor<?x8x12xf32>, !matrices
  // CHECK: mica.linear_attention %{{.*}}, %{{.*}}, %{{.*}} decay(%{{.*}} : tensor<?x8xf32>) beta(%{{.*}} : tensor<?x8xf32>), %{{.*}}[%{{.*}}] at(%{{.*}}, %{{.*}} : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x16xf32>, tensor<?x8x12xf32>, <10 x 8 x 16 x 12 x f32>
  %z, %last = mica.linear_attention %q, %k, %y decay(%decay : tensor<?x8xf32>) beta(%beta : tensor<?x8xf32>), %next[%layer]
      at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x16xf32>, tensor<?x8x12xf32>, !matrices
  return %last : !matrices
}

// CHECK-LABEL: func.func @mamba
func.func @mamba(%x: tensor<?x2x16xf32>, %dt: tensor<?x2xf32>, %a_log: tensor<2xf32>, %bias: tensor<2xbf16>) -> tensor<?x2x16xf32> {
  // CHECK: mica.softplus %{{.*}} bias(%{{.*}}) : tensor<?x2xf32>, tensor<2xbf16>
  %0 = mica.softplus %dt bias(%bias) : tensor<?x2xf32>, tensor<2xbf16>
  // CHECK: mica.decay %{{.*}}, %{{.*}} : tensor<?x2xf32>, tensor<2xf32>
  %1 = mica.decay %0, %a_log : tensor<?x2xf32>, tensor<2xf32>
  // CHECK: mica.scale_heads %{{.*}} by(%{{.*}}) : tensor<?x2x16xf32>, tensor<?x2xf32>
  %2 = mica.scale_heads %x by(%1) : tensor<?x2x16xf32>, tensor<?x2xf32>
  // CHECK: mica.scale_heads %{{.*}} by(%{{.*}}) : tensor<?x2x16xf32>, tensor<2xf32>
  %3 = mica.scale_heads %2 by(%a_log) : tensor<?x2x16xf32>, tensor<2xf32>
  return %3 : tensor<?x2x16xf32>
}
