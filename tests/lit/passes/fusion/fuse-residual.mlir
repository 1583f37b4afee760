// RUN: mica-opt %s --mica-fuse-residual | FileCheck %s

// CHECK-LABEL: func @residual
// CHECK-SAME: %[[R:[a-z0-9]+]]: tensor<?x32xf32>, %[[X:[a-z0-9]+]]: tensor<?x64xf32>, %[[W:[a-z0-9]+]]: tensor<32x64xf32>
func.func @residual(%r: tensor<?x32xf32>, %x: tensor<?x64xf32>, %w: tensor<32x64xf32>, %b: tensor<32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK-NEXT: %[[Z:.*]] = mica.linear %[[X]], %[[W]] residual(%[[R]] : tensor<?x32xf32>)
  %y = mica.linear %x, %w : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %z = mica.add %r, %y : tensor<?x32xf32>
  // CHECK-NEXT: %[[V:.*]] = mica.linear %[[X]], %[[W]] bias(%{{.*}} : tensor<32xf32>) residual(%[[Z]] : tensor<?x32xf32>)
  %u = mica.linear %x, %w bias(%b : tensor<32xf32>) : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %v = mica.add %u, %z : tensor<?x32xf32>
  // CHECK-NEXT: return %[[Z]], %[[V]]
  return %z, %v : tensor<?x32xf32>, tensor<?x32xf32>
}

// Experts and a shared expert are chained.
// CHECK-LABEL: func @shared_expert
// CHECK-SAME: %[[R:[a-z0-9]+]]: tensor<?x32xf32>, %[[X:[a-z0-9]+]]: tensor<?x64xf32>, %[[W:[a-z0-9]+]]: tensor<32x64xf32>
func.func @shared_expert(%r: tensor<?x32xf32>, %x: tensor<?x64xf32>, %w: tensor<32x64xf32>, %p: tensor<?x1xf32>, %e: tensor<?x1xi32>,
    %gu: tensor<2x128x64xf32>, %down: tensor<2x32x64xf32>) -> tensor<?x32xf32> {
  // CHECK-NEXT: %[[Y:.*]] = mica.moe_experts %[[X]], {{.*}} residual(%[[R]] : tensor<?x32xf32>)
  // CHECK-NEXT: %[[Z:.*]] = mica.linear %[[X]], %[[W]] residual(%[[Y]] : tensor<?x32xf32>)
  // CHECK-NEXT: return %[[Z]]
  %y = mica.moe_experts %x, %p, %e, %gu, %down silu inner(64)
      : tensor<?x64xf32>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x128x64xf32>, tensor<2x32x64xf32> -> tensor<?x32xf32>
  %s = mica.linear %x, %w : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %a = mica.add %y, %s : tensor<?x32xf32>
  %z = mica.add %r, %a : tensor<?x32xf32>
  return %z : tensor<?x32xf32>
}

// Experts and two shared experts.
// CHECK-LABEL: func @two_shared_experts
func.func @two_shared_experts(%r: tensor<?x32xf32>, %x: tensor<?x64xf32>, %w: tensor<32x64xf32>, %v: tensor<32x64xf32>, %p: tensor<?x1xf32>,
    %e: tensor<?x1xi32>, %gu: tensor<2x128x64xf32>, %down: tensor<2x32x64xf32>) -> tensor<?x32xf32> {
  // CHECK-NOT: mica.add
  %y = mica.moe_experts %x, %p, %e, %gu, %down silu inner(64)
      : tensor<?x64xf32>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x128x64xf32>, tensor<2x32x64xf32> -> tensor<?x32xf32>
  %s = mica.linear %x, %w : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %t = mica.linear %x, %v : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %a = mica.add %y, %s : tensor<?x32xf32>
  %b = mica.add %a, %t : tensor<?x32xf32>
  %z = mica.add %r, %b : tensor<?x32xf32>
  return %z : tensor<?x32xf32>
}

// CHECK-LABEL: func @no_second_use
func.func @no_second_use(%r: tensor<?x32xf32>, %x: tensor<?x64xf32>, %w: tensor<32x64xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK: mica.add
  %y = mica.linear %x, %w : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %z = mica.add %r, %y : tensor<?x32xf32>
  return %y, %z : tensor<?x32xf32>, tensor<?x32xf32>
}

// CHECK-LABEL: func @no_residual_there_already
func.func @no_residual_there_already(%r: tensor<?x32xf32>, %x: tensor<?x64xf32>, %w: tensor<32x64xf32>) -> tensor<?x32xf32> {
  // CHECK: mica.add
  %y = mica.linear %x, %w residual(%r : tensor<?x32xf32>) : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %z = mica.add %r, %y : tensor<?x32xf32>
  return %z : tensor<?x32xf32>
}

// CHECK-LABEL: func @no_sum_with_itself
func.func @no_sum_with_itself(%x: tensor<?x64xf32>, %w: tensor<32x64xf32>) -> tensor<?x32xf32> {
  // CHECK: mica.add
  %y = mica.linear %x, %w : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
  %z = mica.add %y, %y : tensor<?x32xf32>
  return %z : tensor<?x32xf32>
}
