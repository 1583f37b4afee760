// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-specialize-phases="gemm-threshold=8 few-rows=4" | FileCheck %s "--implicit-check-not=func private @layer("

// CHECK: module attributes {mica.few_rows = 4 : i64, mica.gemm_threshold = 8 : i64}
// CHECK: func private @layer_few({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 4 : i64}
// CHECK: func @main_few({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 4 : i64}
// CHECK: call @layer_few
// CHECK: func private @layer_several({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 8 : i64}
// CHECK: func @main_several({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 8 : i64}
// CHECK: call @layer_several
// CHECK: func private @layer_many({{.*}}) -> tensor<?x32xf32> {
// CHECK: func @main_many({{.*}}) -> tensor<?x32xf32> {
// CHECK: call @layer_many
module {
  func.func private @layer(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    %y = mica.silu %x : tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    %y = call @layer(%x) : (tensor<?x32xf32>) -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
}

// -----

// expected-error @+1 {{has been specialized for few and many rows already}}
module @no_second_time attributes {mica.gemm_threshold = 8 : i64} {
  func.func private @layer_few() attributes {mica.max_rows = 8 : i64}
}

// -----

// Numbers that are in the module count, not the options'.
// CHECK: module @its_own attributes {mica.few_rows = 2 : i64, mica.gemm_threshold = 6 : i64}
// CHECK: func @main_few({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 2 : i64}
// CHECK: func @main_several({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 6 : i64}
module @its_own attributes {mica.few_rows = 2 : i64, mica.gemm_threshold = 6 : i64} {
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    return %x : tensor<?x32xf32>
  }
}

// -----

// Few rows are at most as many as the GEMM threshold: then there are two copies.
// CHECK: module @no_several attributes {mica.few_rows = 3 : i64, mica.gemm_threshold = 3 : i64}
// CHECK: func @main_few({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 3 : i64}
// CHECK-NOT: _several
// CHECK: func @main_many(
module @no_several attributes {mica.gemm_threshold = 3 : i64} {
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    return %x : tensor<?x32xf32>
  }
}

// -----

// Rows of blocks are rounded differently in prompts: each role has its functions. They call those of their own.
// CHECK: module @by_role attributes {mica.few_rows = 4 : i64, mica.gemm_threshold = 8 : i64}
// CHECK: func private @layer_decode_few({{.*}} attributes {mica.max_rows = 4 : i64, mica.row_role = "decode"}
// CHECK: func @main_decode_few({{.*}} attributes {mica.max_rows = 4 : i64, mica.row_role = "decode"}
// CHECK: call @layer_decode_few
// CHECK: func private @layer_decode_several({{.*}} attributes {mica.max_rows = 8 : i64, mica.row_role = "decode"}
// CHECK: func @main_decode_several({{.*}} attributes {mica.max_rows = 8 : i64, mica.row_role = "decode"}
// CHECK: call @layer_decode_several
// CHECK: func private @layer_decode_many({{.*}} attributes {mica.row_role = "decode"}
// CHECK: func @main_decode_many({{.*}} attributes {mica.row_role = "decode"}
// CHECK: call @layer_decode_many
// CHECK: func private @layer_prompt_several({{.*}} attributes {mica.max_rows = 8 : i64, mica.row_role = "prompt"}
// CHECK: func @main_prompt_several({{.*}} attributes {mica.max_rows = 8 : i64, mica.row_role = "prompt"}
// CHECK: call @layer_prompt_several
// CHECK: func private @layer_prompt_many({{.*}} attributes {mica.row_role = "prompt"}
// CHECK: func @main_prompt_many({{.*}} attributes {mica.row_role = "prompt"}
// CHECK: call @layer_prompt_many
// CHECK-NOT: func
module @by_role {
  mica.weight @w : tensor<64x64x!mica.block<q4_0>>
  func.func private @layer(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    return %x : tensor<?x32xf32>
  }
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    %y = call @layer(%x) : (tensor<?x32xf32>) -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
}

// -----

// Prompts of few rows have the function for several, also where decoding has none.
// CHECK: module @prompts_of_few_rows attributes {mica.few_rows = 3 : i64, mica.gemm_threshold = 3 : i64}
// CHECK: func @main_decode_few({{.*}} attributes {mica.max_rows = 3 : i64, mica.row_role = "decode"}
// CHECK-NOT: decode_several
// CHECK: func @main_decode_many({{.*}} attributes {mica.row_role = "decode"}
// CHECK: func @main_prompt_several({{.*}} attributes {mica.max_rows = 3 : i64, mica.row_role = "prompt"}
// CHECK: func @main_prompt_many({{.*}} attributes {mica.row_role = "prompt"}
module @prompts_of_few_rows attributes {mica.gemm_threshold = 3 : i64} {
  mica.weight @w : tensor<64x64x!mica.block<q8_0>>
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    return %x : tensor<?x32xf32>
  }
}

// -----

// Without blocks rows are alike: functions have no role.
// CHECK: module @alike
// CHECK-NOT: mica.row_role
// CHECK: func @main_few(
// CHECK-NOT: mica.row_role
// CHECK: func @main_many(
// CHECK-NOT: mica.row_role
module @alike {
  mica.weight @w : tensor<64x64xbf16>
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    return %x : tensor<?x32xf32>
  }
}

// -----

// expected-error @+1 {{has been specialized for few and many rows already}}
module @a_role_says_so {
  func.func private @layer_prompt_many() attributes {mica.row_role = "prompt"}
}
