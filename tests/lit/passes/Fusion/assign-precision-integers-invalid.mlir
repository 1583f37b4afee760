// RUN: mica-opt %s --verify-diagnostics --mica-assign-precision="weights=int8 kv=int8"

// expected-error @+1 {{caches of integers are not known: use f32 or bf16}}
module {}
