// RUN: mica-opt %s --mica-to-fused --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A fused op has the locations of all original ops.

mica.weight @table : tensor<32x32xf32>
mica.weight @q : tensor<32x32xf32>
mica.weight @k : tensor<32x32xf32>
func.func private @layer(%x: tensor<?x32xf32>, %wq: tensor<32x32xf32>, %wk: tensor<32x32xf32>) -> tensor<?x32xf32> {
  // CHECK: mica.linear {{.*}} loc(fused["model.layers.*.q_proj", "model.layers.*.k_proj"])
  %q = mica.linear %x, %wq : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32> loc("model.layers.*.q_proj")
  %k = mica.linear %x, %wk : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32> loc("model.layers.*.k_proj")
  %y = mica.mul %q, %k : tensor<?x32xf32> loc("model.layers.*.act")
  return %y : tensor<?x32xf32>
}
func.func @main(%t: tensor<?xi32> {mica.role = "tokens"}, %s: tensor<?xi32> {mica.role = "sequences"},
    %p: tensor<?xi32> {mica.role = "positions"}, %o: tensor<?xi32> {mica.role = "logit_indices"})
    -> (tensor<?x32xf32> {mica.role = "logits"}) {
  %table = mica.get_weight @table : tensor<32x32xf32>
  %x = mica.embedding %t, %table : tensor<?xi32>, tensor<32x32xf32> -> tensor<?x32xf32>
  %q = mica.get_weight @q : tensor<32x32xf32>
  %k = mica.get_weight @k : tensor<32x32xf32>
  %y = call @layer(%x, %q, %k) : (tensor<?x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<?x32xf32>
  %chosen = mica.select_rows %y, %o : tensor<?x32xf32>, tensor<?xi32> -> tensor<?x32xf32>
  return %chosen : tensor<?x32xf32>
}
