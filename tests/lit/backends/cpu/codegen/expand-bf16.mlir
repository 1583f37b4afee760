// RUN: mica-opt --cpu-expand-bf16 %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @round_trip
// CHECK-NOT: arith.{{extf|truncf}}
// CHECK: return
func.func @round_trip(%x: vector<16xf32>, %s: f32) -> (vector<16xf32>, bf16) {
  %0 = arith.truncf %x : vector<16xf32> to vector<16xbf16>
  %1 = arith.extf %0 : vector<16xbf16> to vector<16xf32>
  %2 = arith.truncf %s : f32 to bf16
  return %1, %2 : vector<16xf32>, bf16
}

// -----

func.func @no_double(%x: f64) -> bf16 {
  // expected-error @+1 {{converts bf16 in a way that this target does not support}}
  %0 = arith.truncf %x : f64 to bf16
  return %0 : bf16
}
