// RUN: mica-opt %s --cpu-lower-to-exec | FileCheck %s

// CHECK-LABEL: func.func private @norms
// CHECK: exec.launch @rmsnorm tasks(%{{.*}}) ins(%arg0, %arg1 : tensor<?x40xf32>, tensor<40xf32>) outs(%{{.*}} : tensor<?x40xbf16>)
// CHECK: exec.launch @layernorm
func.func private @norms(%x: tensor<?x40xf32>, %w: tensor<40xf32>) -> (tensor<?x40xbf16>, tensor<?x40xf32>) {
  %y = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x40xf32>, tensor<40xf32> -> tensor<?x40xbf16>
  %z = mica.layernorm %x, %w bias(%w : tensor<40xf32>) eps(1.0e-05) : tensor<?x40xf32>, tensor<40xf32> -> tensor<?x40xf32>
  return %y, %z : tensor<?x40xbf16>, tensor<?x40xf32>
}

// Ops with the same types and attributes share a kernel; a different eps needs another kernel.
// CHECK-LABEL: func.func private @kernels_are_shared
// CHECK: exec.launch @[[SAME:rmsnorm_[0-9]+]]
// CHECK: exec.launch @[[SAME]] tasks
// CHECK: exec.launch @rmsnorm_
// CHECK-NOT: exec.launch @[[SAME]] tasks
// CHECK: return
func.func private @kernels_are_shared(%x: tensor<?x64xf32>, %w: tensor<64xf32>) -> tensor<?x64xf32> {
  %a = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  %b = mica.rmsnorm %a, %w eps(1.0e-05) : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  %c = mica.rmsnorm %b, %w eps(1.0e-06) : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  return %c : tensor<?x64xf32>
}

// CHECK-LABEL: func.func private @elementwise
// CHECK: exec.launch @add
// CHECK: exec.launch @mul
// CHECK: exec.launch @silu
// CHECK: exec.launch @gelu
// CHECK: exec.launch @gelu_tanh
// CHECK: exec.launch @relu
// CHECK: exec.launch @cast
func.func private @elementwise(%x: tensor<?x40xf32>) -> tensor<?x40xbf16> {
  %a = mica.add %x, %x : tensor<?x40xf32>
  %b = mica.mul %a, %x : tensor<?x40xf32>
  %c = mica.silu %b : tensor<?x40xf32>
  %d = mica.gelu %c : tensor<?x40xf32>
  %e = mica.gelu_tanh %d : tensor<?x40xf32>
  %f = mica.relu %e : tensor<?x40xf32>
  %g = mica.cast %f : tensor<?x40xf32> to tensor<?x40xbf16>
  return %g : tensor<?x40xbf16>
}

// Reshapes are views.
// CHECK-LABEL: func.func private @views
// CHECK: tensor.extract_slice %arg0[0, 0] [%{{.*}}, 32] [1, 1]
// CHECK: tensor.extract_slice %arg0[0, 32] [%{{.*}}, 8] [1, 1]
// CHECK: tensor.expand_shape
// CHECK: tensor.collapse_shape
func.func private @views(%x: tensor<?x40xf32>, %h: tensor<?x4x8xf32>) -> (tensor<?x4x8xf32>, tensor<?x8xf32>, tensor<?x32xf32>) {
  %a, %b = mica.split %x : tensor<?x40xf32> -> tensor<?x32xf32>, tensor<?x8xf32>
  %c = mica.split_heads %a : tensor<?x32xf32> to tensor<?x4x8xf32>
  %d = mica.merge_heads %h : tensor<?x4x8xf32> to tensor<?x32xf32>
  return %c, %b, %d : tensor<?x4x8xf32>, tensor<?x8xf32>, tensor<?x32xf32>
}

// CHECK-LABEL: func.func private @select
// CHECK: exec.launch @select_rows tasks(%{{.*}}) ins(%arg0, %arg1
func.func private @select(%x: tensor<?x40xf32>, %rows: tensor<?xi32>) -> tensor<?x40xf32> {
  %y = mica.select_rows %x, %rows : tensor<?x40xf32>, tensor<?xi32> -> tensor<?x40xf32>
  return %y : tensor<?x40xf32>
}

// A norm is two loops over a row; the last vector is masked unless the row size is a multiple of 16.
// CHECK-LABEL: func.func private @rmsnorm(
// CHECK-SAME: exec.kernel = #exec.kernel<"rmsnorm", [
// CHECK: scf.for
// CHECK: scf.for
// CHECK: vector.fma
// CHECK: vector.maskedload
// CHECK: vector.reduction <add>
// CHECK: math.sqrt
// CHECK: arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
// CHECK: vector.maskedstore
