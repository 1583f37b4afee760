// RUN: mica-opt %s | mica-opt | FileCheck %s

// Zero values are not printed.
// CHECK: exec.cost = #exec.cost<weight_bytes = 49152, row_flops = 22016>, exec.kernel = #exec.kernel<"linear", [f32, 172, 64]>
func.func private @linear(%begin: index, %end: index) attributes {
  exec.kernel = #exec.kernel<"linear", [f32, 172, 64]>, exec.cost = #exec.cost<weight_bytes = 49152, row_weight_bytes = 0, row_flops = 22016>}
// CHECK: exec.cost = #exec.cost<position_cache_bytes = 128, pair_flops = 256, window = 16>, exec.kernel = #exec.kernel<"attention", [2.500000e-01, "half", true]>
func.func private @attention(%begin: index, %end: index) attributes {
  exec.kernel = #exec.kernel<"attention", [2.5e-01, "half", true]>, exec.cost = #exec.cost<position_cache_bytes = 128, pair_flops = 256, window = 16>}
// CHECK: #exec.cost<expert_bytes = 4096, experts = 8, row_experts = 2>
func.func private @experts(%begin: index, %end: index) attributes {
  exec.kernel = #exec.kernel<"experts", []>, exec.cost = #exec.cost<expert_bytes = 4096, experts = 8, row_experts = 2>}
