// RUN: mica-opt %s --split-input-file --mica-shard=ranks=4 --verify-diagnostics

// Two ranks have the same head, but all factors.
func.func @heads_of_two_ranks(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %dt: tensor<?x2xf32>) {
  %0 = mica.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32> -> tensor<?x8xf32>
  %1 = mica.split_heads %0 : tensor<?x8xf32> to tensor<?x2x4xf32>
  // expected-error @+1 {{'mica.scale_heads' op cannot be partitioned for 4 ranks: its operands have different heads on a rank}}
  %2 = mica.scale_heads %1 by(%dt) : tensor<?x2x4xf32>, tensor<?x2xf32>
  return
}
