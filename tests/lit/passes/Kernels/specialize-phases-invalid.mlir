// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-specialize-phases=crossing=0

// expected-error @+1 {{the crossing between few and many rows must be at least 1, got 0}}
module {
}

// -----

// expected-error @+1 {{has mica.crossing = 0 : i64, write a number of rows from 1 to 1024}}
module attributes {mica.crossing = 0 : i64} {
  func.func private @main()
}

// -----

// expected-error @+1 {{has mica.crossing = "many", write a number of rows from 1 to 1024}}
module attributes {mica.crossing = "many"} {
  func.func private @main()
}

// -----

// expected-error @+1 {{has mica.crossing = 1025 : i64, write a number of rows from 1 to 1024}}
module attributes {mica.crossing = 1025 : i64} {
  func.func private @main()
}

// -----

// expected-error @+1 {{has mica.crossing = 8 : ui32, write a number of rows from 1 to 1024}}
module attributes {mica.crossing = 8 : ui32} {
  func.func private @main()
}
