// RUN: mica-opt %s --verify-diagnostics --cpu-set-target=cpu=nonsense
// RUN: not mica-opt %s --cpu-set-target=cpu=nehalem 2>&1 | FileCheck %s
// CHECK: error: cpu-set-target: target 'nehalem' is below x86-64-v3 (it lacks avx, {{.*}}); use a newer one

// expected-error @+1 {{cpu-set-target: unknown target 'nonsense'; use native or the name of a CPU such as}}
module {}
