// RUN: mica-opt %s | mica-opt | FileCheck %s

// What is zero is not printed.
// CHECK: #exec.cost<weight_bytes = 49152, row_flops = 22016>
func.func private @linear(%begin: index, %end: index) attributes {
  exec.kernel, exec.cost = #exec.cost<weight_bytes = 49152, row_weight_bytes = 0, row_flops = 22016>}
// CHECK: #exec.cost<position_cache_bytes = 128, pair_flops = 256, window = 16>
func.func private @attention(%begin: index, %end: index) attributes {
  exec.kernel, exec.cost = #exec.cost<position_cache_bytes = 128, pair_flops = 256, window = 16>}
// CHECK: #exec.cost<expert_bytes = 4096, experts = 8, row_experts = 2>
func.func private @experts(%begin: index, %end: index) attributes {
  exec.kernel, exec.cost = #exec.cost<expert_bytes = 4096, experts = 8, row_experts = 2>}
