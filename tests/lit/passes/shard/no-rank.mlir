// RUN: mica-opt %s --mica-shard=ranks=0 --verify-diagnostics

// expected-error @+1 {{op cannot be partitioned for 0 ranks, expected 1 to 4096}}
module {
}
