// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-specialize-phases=gemm-threshold=0

// expected-error @+1 {{small-batch and gemm-threshold must be at least 1, got 16 and 0}}
module {
}

// -----

// expected-error @+1 {{has mica.gemm_threshold = 0 : i64, write a number of rows from 1 to 1024}}
module attributes {mica.gemm_threshold = 0 : i64} {
  func.func private @main()
}

// -----

// expected-error @+1 {{has mica.gemm_threshold = "many", write a number of rows from 1 to 1024}}
module attributes {mica.gemm_threshold = "many"} {
  func.func private @main()
}

// -----

// expected-error @+1 {{has mica.gemm_threshold = 1025 : i64, write a number of rows from 1 to 1024}}
module attributes {mica.gemm_threshold = 1025 : i64} {
  func.func private @main()
}

// -----

// expected-error @+1 {{has mica.gemm_threshold = 8 : ui32, write a number of rows from 1 to 1024}}
module attributes {mica.gemm_threshold = 8 : ui32} {
  func.func private @main()
}

// -----

// expected-error @+1 {{has mica.small_batch = 0 : i64, write a number of rows from 1 to 1024}}
module attributes {mica.gemm_threshold = 8 : i64, mica.small_batch = 0 : i64} {
  func.func private @main()
}
