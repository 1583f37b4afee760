// RUN: mica-opt %s --verify-diagnostics --mica-specialize-phases=crossing=0

// expected-error @+1 {{the crossing between few and many rows must be at least 1, got 0}}
module {
}
