// RUN: mica-opt %s --pass-pipeline="builtin.module(mica-preserve-blocks,mica-equalize-channels,mica-assign-precision{weights=int8 kv=bf16},func.func(mica-fuse-casts,cpu-select-kernels{min-work=1}),cpu-assign-layouts)" | FileCheck %s --implicit-check-not=mica.equalize "--implicit-check-not=kernel(onednn)"

// Preserved weights are not equalized, their activations have 16 bits, and oneDNN is not used.
// CHECK-LABEL: module @kept
// CHECK-DAG: mica.weight @a at {{.*}} : tensor<32x32x!mica.block<q8_0>, #mica.packed<columns = 64, depth = 4, k_block = 64>>
// CHECK: mica.rmsnorm {{.*}} -> tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
// CHECK-NEXT: mica.linear {{.*}} kernel(generated) : tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
module @kept {
  mica.weight @table {stored = !mica.block<q4_0>} : tensor<96x32xf32>
  mica.weight @norm : tensor<32xf32>
  mica.weight @a {stored = !mica.block<q8_0>} : tensor<32x32xf32>
  mica.weight @b from [#mica.slice<"b", rows 0 to 32 of 48>] {stored = !mica.block<q8_0>} : tensor<32x32xf32>
  func.func private @layer(%x: tensor<?x32xf32>, %norm: tensor<32xf32>, %w: tensor<32x32xf32>) -> tensor<?x32xf32> {
    %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
    %y = mica.linear %n, %w : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
  func.func @main(%t: tensor<?xi32>) -> tensor<?x96xf32> {
    %table = mica.get_weight @table : tensor<96x32xf32>
    %norm = mica.get_weight @norm : tensor<32xf32>
    %a = mica.get_weight @a : tensor<32x32xf32>
    %b = mica.get_weight @b : tensor<32x32xf32>
    %x = mica.embedding %t, %table : tensor<?xi32>, tensor<96x32xf32> -> tensor<?x32xf32>
    %y = call @layer(%x, %norm, %a) : (tensor<?x32xf32>, tensor<32xf32>, tensor<32x32xf32>) -> tensor<?x32xf32>
    %z = call @layer(%y, %norm, %b) : (tensor<?x32xf32>, tensor<32xf32>, tensor<32x32xf32>) -> tensor<?x32xf32>
    %l = mica.lm_head %z, %table : tensor<?x32xf32>, tensor<96x32xf32> -> tensor<?x96xf32>
    return %l : tensor<?x96xf32>
  }
}
