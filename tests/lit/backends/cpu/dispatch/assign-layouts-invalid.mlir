// RUN: mica-opt %s --cpu-assign-layouts --verify-diagnostics

// expected-error @below {{'mica.weight' op has an offset already: layouts are assigned once}}
mica.weight @norm at 0 bytes 256 : tensor<64xf32>
