// RUN: mica-opt %s --split-input-file --mica-equalize-channels | FileCheck %s

// A norm's weight and the columns of all matmuls that read it; the rows of up, including its bias, and the columns of down.
// One op for every call of a layer.
// CHECK: mica.weight @norm0 :
// CHECK-NEXT: mica.equalize rows ["norm0"] columns ["up0", "gate0"]
// CHECK: mica.weight @up0 :
// CHECK-NEXT: mica.equalize rows ["up0", "bias0"] columns ["down0"]
// CHECK: mica.weight @norm1 :
// CHECK-NEXT: mica.equalize rows ["norm1"] columns ["up1", "gate1"]
// CHECK: mica.weight @up1 :
// CHECK-NEXT: mica.equalize rows ["up1", "bias1"] columns ["down1"]
mica.weight @norm0 : tensor<32xf32>
mica.weight @gate0 : tensor<48x32xf32>
mica.weight @up0 : tensor<48x32xf32>
mica.weight @bias0 : tensor<48xf32>
mica.weight @down0 : tensor<32x48xf32>
mica.weight @norm1 : tensor<32xf32>
mica.weight @gate1 : tensor<48x32xf32>
mica.weight @up1 : tensor<48x32xf32>
mica.weight @bias1 : tensor<48xf32>
mica.weight @down1 : tensor<32x48xf32>
func.func private @layer(%x: tensor<?x32xf32>, %norm: tensor<32xf32>, %wg: tensor<48x32xf32>, %wu: tensor<48x32xf32>,
    %bias: tensor<48xf32>, %wd: tensor<32x48xf32>) -> tensor<?x32xf32> {
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
  %g = mica.linear %n, %wg : tensor<?x32xf32>, tensor<48x32xf32> -> tensor<?x48xf32>
  %u = mica.linear %n, %wu bias(%bias : tensor<48xf32>) : tensor<?x32xf32>, tensor<48x32xf32> -> tensor<?x48xf32>
  %s = mica.silu %g : tensor<?x48xf32>
  %h = mica.mul %s, %u : tensor<?x48xf32>
  %d = mica.linear %h, %wd : tensor<?x48xf32>, tensor<32x48xf32> -> tensor<?x32xf32>
  return %d : tensor<?x32xf32>
}
func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %n0 = mica.get_weight @norm0 : tensor<32xf32>
  %g0 = mica.get_weight @gate0 : tensor<48x32xf32>
  %u0 = mica.get_weight @up0 : tensor<48x32xf32>
  %b0 = mica.get_weight @bias0 : tensor<48xf32>
  %d0 = mica.get_weight @down0 : tensor<32x48xf32>
  %y = call @layer(%x, %n0, %g0, %u0, %b0, %d0) : (tensor<?x32xf32>, tensor<32xf32>, tensor<48x32xf32>, tensor<48x32xf32>, tensor<48xf32>, tensor<32x48xf32>) -> tensor<?x32xf32>
  %n1 = mica.get_weight @norm1 : tensor<32xf32>
  %g1 = mica.get_weight @gate1 : tensor<48x32xf32>
  %u1 = mica.get_weight @up1 : tensor<48x32xf32>
  %b1 = mica.get_weight @bias1 : tensor<48xf32>
  %d1 = mica.get_weight @down1 : tensor<32x48xf32>
  %z = call @layer(%y, %n1, %g1, %u1, %b1, %d1) : (tensor<?x32xf32>, tensor<32xf32>, tensor<48x32xf32>, tensor<48x32xf32>, tensor<48xf32>, tensor<32x48xf32>) -> tensor<?x32xf32>
  return %z : tensor<?x32xf32>
}

// -----

// The weight_offset of norm weights is added when they are read, in every call.
// CHECK: mica.equalize rows ["norm0"] offset(1.000000e+00) columns ["w0"]
// CHECK: mica.equalize rows ["norm1"] offset(1.000000e+00) columns ["w1"]
// CHECK-LABEL: func.func private @norm_with_an_offset
// CHECK: mica.rmsnorm %{{.*}}, %{{.*}} eps(1.000000e-05) : tensor<?x16xf32>
// CHECK: mica.rmsnorm %{{.*}}, %{{.*}} eps(1.000000e-05) weight_offset(1.000000e+00) : tensor<?x16xf32>
mica.weight @norm0 : tensor<16xf32>
mica.weight @w0 : tensor<16x16xf32>
mica.weight @other0 : tensor<16xf32>
mica.weight @v0 : tensor<16x16xf32>
mica.weight @norm1 : tensor<16xf32>
mica.weight @w1 : tensor<16x16xf32>
func.func private @norm_with_an_offset(%x: tensor<?x16xf32>, %norm: tensor<16xf32>, %w: tensor<16x16xf32>,
    %other: tensor<16xf32>, %v: tensor<16x16xf32>) -> tensor<?x16xf32> {
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) weight_offset(1.0) : tensor<?x16xf32>, tensor<16xf32> -> tensor<?x16xf32>
  %y = mica.linear %n, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %o = mica.rmsnorm %y, %other eps(1.0e-05) weight_offset(1.0) : tensor<?x16xf32>, tensor<16xf32> -> tensor<?x16xf32>
  %z = mica.linear %o, %v : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}
func.func @main(%x: tensor<?x16xf32>, %given: tensor<16xf32>) -> tensor<?x16xf32> {
  %n0 = mica.get_weight @norm0 : tensor<16xf32>
  %w0 = mica.get_weight @w0 : tensor<16x16xf32>
  %o0 = mica.get_weight @other0 : tensor<16xf32>
  %v0 = mica.get_weight @v0 : tensor<16x16xf32>
  %y = call @norm_with_an_offset(%x, %n0, %w0, %o0, %v0) : (tensor<?x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>) -> tensor<?x16xf32>
  %n1 = mica.get_weight @norm1 : tensor<16xf32>
  %w1 = mica.get_weight @w1 : tensor<16x16xf32>
  // The weight of the second norm is not a weight of the checkpoint here.
  %z = call @norm_with_an_offset(%y, %n1, %w1, %given, %v0) : (tensor<?x16xf32>, tensor<16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16x16xf32>) -> tensor<?x16xf32>
  return %z : tensor<?x16xf32>
}

// -----

// Each expert separately.
// CHECK: mica.equalize rows ["up.0"] columns ["down.0"]
// CHECK: mica.equalize rows ["up.1"] columns ["down.1"]
mica.weight @gates from ["gate.0", "gate.1"] stack : tensor<2x32x16xf32>
mica.weight @ups from ["up.0", "up.1"] stack : tensor<2x32x16xf32>
mica.weight @downs from ["down.0", "down.1"] stack : tensor<2x16x32xf32>
func.func @experts(%x: tensor<?x16xf32>, %w: tensor<?x1xf32>, %e: tensor<?x1xi32>) -> tensor<?x16xf32> {
  %g = mica.get_weight @gates : tensor<2x32x16xf32>
  %u = mica.get_weight @ups : tensor<2x32x16xf32>
  %d = mica.get_weight @downs : tensor<2x16x32xf32>
  %y = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<2x32x16xf32>) silu inner(32)
      : tensor<?x16xf32>, tensor<?x1xf32>, tensor<?x1xi32>, tensor<2x32x16xf32>, tensor<2x16x32xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// The norm is also read by an activation function.
// CHECK-LABEL: func.func @no_other_reader
// CHECK-NOT: mica.equalize
mica.weight @norm : tensor<16xf32>
mica.weight @w : tensor<16x16xf32>
func.func @no_other_reader(%x: tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %norm = mica.get_weight @norm : tensor<16xf32>
  %w = mica.get_weight @w : tensor<16x16xf32>
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x16xf32>, tensor<16xf32> -> tensor<?x16xf32>
  %y = mica.linear %n, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %z = mica.silu %n : tensor<?x16xf32>
  return %y, %z : tensor<?x16xf32>, tensor<?x16xf32>
}

// -----

// The matrix is also the embedding.
// CHECK-LABEL: func.func @no_tied_matrix
// CHECK-NOT: mica.equalize
mica.weight @norm : tensor<16xf32>
mica.weight @w : tensor<16x16xf32>
func.func @no_tied_matrix(%t: tensor<?xi32>) -> tensor<?x16xf32> {
  %norm = mica.get_weight @norm : tensor<16xf32>
  %w = mica.get_weight @w : tensor<16x16xf32>
  %x = mica.embedding %t, %w : tensor<?xi32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x16xf32>, tensor<16xf32> -> tensor<?x16xf32>
  %y = mica.lm_head %n, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

// A tensor is shared by two weights; and up adds the residual, which is not scaled.
// CHECK-LABEL: func.func @no_shared_tensor
// CHECK-NOT: mica.equalize
mica.weight @norm : tensor<16xf32>
mica.weight @w : tensor<16x16xf32>
mica.weight @other from ["w"] : tensor<16x16xf32>
mica.weight @up : tensor<16x16xf32>
mica.weight @down : tensor<16x16xf32>
func.func @no_shared_tensor(%x: tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %norm = mica.get_weight @norm : tensor<16xf32>
  %w = mica.get_weight @w : tensor<16x16xf32>
  %other = mica.get_weight @other : tensor<16x16xf32>
  %up = mica.get_weight @up : tensor<16x16xf32>
  %down = mica.get_weight @down : tensor<16x16xf32>
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x16xf32>, tensor<16xf32> -> tensor<?x16xf32>
  %y = mica.linear %n, %w : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %z = mica.linear %x, %other : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %u = mica.linear %x, %up residual(%x : tensor<?x16xf32>) : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  %h = mica.mul %y, %u : tensor<?x16xf32>
  %d = mica.linear %h, %down : tensor<?x16xf32>, tensor<16x16xf32> -> tensor<?x16xf32>
  return %z, %d : tensor<?x16xf32>, tensor<?x16xf32>
}
