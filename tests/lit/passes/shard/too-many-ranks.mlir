// RUN: mica-opt %s --mica-shard=ranks=4097 --verify-diagnostics

// expected-error @+1 {{op cannot be partitioned for 4097 ranks, expected 1 to 4096}}
module {
}
