// RUN: mica-opt --cpu-expand-math --split-input-file --verify-diagnostics %s | FileCheck %s

// CHECK-LABEL: func.func @all
// CHECK-NOT: math.{{(exp|exp2|tanh|erf|log|sin|cos|rsqrt)}}
// CHECK: return
func.func @all(%x: vector<16xf32>, %s: f32) -> (vector<16xf32>, f32) {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.tanh %0 : vector<16xf32>
  %2 = math.erf %1 : vector<16xf32>
  %3 = math.log %2 : vector<16xf32>
  %4 = math.sin %3 : vector<16xf32>
  %5 = math.cos %4 : vector<16xf32>
  %6 = math.rsqrt %5 : vector<16xf32>
  %7 = math.exp2 %6 : vector<16xf32>
  %8 = math.exp %s : f32
  %9 = math.cos %8 : f32
  return %7, %9 : vector<16xf32>, f32
}

// -----

// CHECK-LABEL: func.func @what_instructions_compute_stays
// CHECK: math.sqrt
// CHECK: math.fma
// CHECK: math.floor
func.func @what_instructions_compute_stays(%x: f32) -> f32 {
  %0 = math.sqrt %x : f32
  %1 = math.fma %0, %x, %x : f32
  %2 = math.floor %1 : f32
  return %2 : f32
}

// -----

func.func @no_power(%x: f32) -> f32 {
  // expected-error @+1 {{would call a function of libm, and no polynomial for it is known here}}
  %0 = math.powf %x, %x : f32
  return %0 : f32
}

// -----

func.func @no_double(%x: f64) -> f64 {
  // expected-error @+1 {{would call a function of libm}}
  %0 = math.exp %x : f64
  return %0 : f64
}

// -----

func.func @no_remainder(%x: f32) -> f32 {
  // expected-error @+1 {{would call fmod of libm}}
  %0 = arith.remf %x, %x : f32
  return %0 : f32
}
