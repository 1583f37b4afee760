// RUN: mica-opt %s --mica-fold-repeat-kv | FileCheck %s

// CHECK-LABEL: func @repeated_heads
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x4x8xf32>, %[[K:[a-z0-9]+]]: tensor<?x?x2x8xf32>, %[[V:[a-z0-9]+]]: tensor<?x?x2x8xf32>
func.func @repeated_heads(%q: tensor<?x4x8xf32>, %k: tensor<?x?x2x8xf32>, %v: tensor<?x?x2x8xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> tensor<?x4x8xf32> {
  // CHECK-NOT: repeat_kv
  %r = mica.repeat_kv %k times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %t = mica.repeat_kv %v times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  // CHECK: mica.attention %[[Q]], %[[K]], %[[V]] at({{.*}}) causal scale(3.500000e-01) window(7) softcap(3.000000e+01)
  // CHECK-SAME: tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
  %y = mica.attention %q, %r, %t at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35) window(7) softcap(30.0)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  return %y : tensor<?x4x8xf32>
}

// CHECK-LABEL: func @no_values_not_repeated
func.func @no_values_not_repeated(%q: tensor<?x4x8xf32>, %k: tensor<?x?x2x8xf32>, %v: tensor<?x?x4x8xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> tensor<?x4x8xf32> {
  // CHECK: mica.repeat_kv
  %r = mica.repeat_kv %k times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %y = mica.attention %q, %r, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  return %y : tensor<?x4x8xf32>
}

// CHECK-LABEL: func @no_repeated_differently
func.func @no_repeated_differently(%q: tensor<?x4x8xf32>, %k: tensor<?x?x2x8xf32>, %v: tensor<?x?x1x8xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> tensor<?x4x8xf32> {
  // CHECK-COUNT-2: mica.repeat_kv
  %r = mica.repeat_kv %k times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
  %t = mica.repeat_kv %v times 4 : tensor<?x?x1x8xf32> -> tensor<?x?x4x8xf32>
  %y = mica.attention %q, %r, %t at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
      : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
  return %y : tensor<?x4x8xf32>
}
