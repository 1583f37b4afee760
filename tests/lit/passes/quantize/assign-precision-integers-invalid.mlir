// RUN: mica-opt %s --verify-diagnostics --mica-assign-precision="weights=int8 kv=int4"

// expected-error @+1 {{caches of 4-bit integers are not supported: use f32, bf16 or int8}}
module {}
