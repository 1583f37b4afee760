// RUN: mica-opt %s --split-input-file --verify-diagnostics --mica-specialize-phases="gemm-threshold=8 small-batch=4" | FileCheck %s "--implicit-check-not=func private @layer("

// CHECK: module attributes {mica.gemm_threshold = 8 : i64, mica.small_batch = 4 : i64}
// CHECK: func private @layer_small({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 4 : i64}
// CHECK: func @main_small({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 4 : i64}
// CHECK: call @layer_small
// CHECK: func private @layer_medium({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 8 : i64}
// CHECK: func @main_medium({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 8 : i64}
// CHECK: call @layer_medium
// CHECK: func private @layer_large({{.*}}) -> tensor<?x32xf32> {
// CHECK: func @main_large({{.*}}) -> tensor<?x32xf32> {
// CHECK: call @layer_large
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

// expected-error @+1 {{functions are specialized already}}
module @no_second_time attributes {mica.gemm_threshold = 8 : i64} {
  func.func private @layer_small() attributes {mica.max_rows = 8 : i64}
}

// -----

// The module's attributes take precedence over the options.
// CHECK: module @its_own attributes {mica.gemm_threshold = 6 : i64, mica.small_batch = 2 : i64}
// CHECK: func @main_small({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 2 : i64}
// CHECK: func @main_medium({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 6 : i64}
module @its_own attributes {mica.gemm_threshold = 6 : i64, mica.small_batch = 2 : i64} {
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    return %x : tensor<?x32xf32>
  }
}

// -----

// small-batch is at most the GEMM threshold: then there are two copies.
// CHECK: module @no_medium attributes {mica.gemm_threshold = 3 : i64, mica.small_batch = 3 : i64}
// CHECK: func @main_small({{.*}}) -> tensor<?x32xf32> attributes {mica.max_rows = 3 : i64}
// CHECK-NOT: _medium
// CHECK: func @main_large(
module @no_medium attributes {mica.gemm_threshold = 3 : i64} {
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    return %x : tensor<?x32xf32>
  }
}

// -----

// Activations of block-quantized weights are rounded differently in prefill: each role has separate functions, which call each other.
// CHECK: module @by_role attributes {mica.gemm_threshold = 8 : i64, mica.small_batch = 4 : i64}
// CHECK: func private @layer_decode_small({{.*}} attributes {mica.max_rows = 4 : i64, mica.row_role = "decode"}
// CHECK: func @main_decode_small({{.*}} attributes {mica.max_rows = 4 : i64, mica.row_role = "decode"}
// CHECK: call @layer_decode_small
// CHECK: func private @layer_decode_medium({{.*}} attributes {mica.max_rows = 8 : i64, mica.row_role = "decode"}
// CHECK: func @main_decode_medium({{.*}} attributes {mica.max_rows = 8 : i64, mica.row_role = "decode"}
// CHECK: call @layer_decode_medium
// CHECK: func private @layer_decode_large({{.*}} attributes {mica.row_role = "decode"}
// CHECK: func @main_decode_large({{.*}} attributes {mica.row_role = "decode"}
// CHECK: call @layer_decode_large
// CHECK: func private @layer_prompt_medium({{.*}} attributes {mica.max_rows = 8 : i64, mica.row_role = "prompt"}
// CHECK: func @main_prompt_medium({{.*}} attributes {mica.max_rows = 8 : i64, mica.row_role = "prompt"}
// CHECK: call @layer_prompt_medium
// CHECK: func private @layer_prompt_large({{.*}} attributes {mica.row_role = "prompt"}
// CHECK: func @main_prompt_large({{.*}} attributes {mica.row_role = "prompt"}
// CHECK: call @layer_prompt_large
// CHECK-NOT: func
module @by_role {
  func.func private @layer(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    %c = mica.cast %x : tensor<?x32xf32> to tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
    %y = mica.cast %c : tensor<?x32x!mica.int_rows<bits = 16, group = 32>> to tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    %y = call @layer(%x) : (tensor<?x32xf32>) -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
}

// -----

// Prefill of few rows uses the function for several rows, also if decoding has none.
// CHECK: module @prompts_of_small_batch attributes {mica.gemm_threshold = 3 : i64, mica.small_batch = 3 : i64}
// CHECK: func @main_decode_small({{.*}} attributes {mica.max_rows = 3 : i64, mica.row_role = "decode"}
// CHECK-NOT: decode_medium
// CHECK: func @main_decode_large({{.*}} attributes {mica.row_role = "decode"}
// CHECK: func @main_prompt_medium({{.*}} attributes {mica.max_rows = 3 : i64, mica.row_role = "prompt"}
// CHECK: func @main_prompt_large({{.*}} attributes {mica.row_role = "prompt"}
module @prompts_of_small_batch attributes {mica.gemm_threshold = 3 : i64} {
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    %c = mica.cast %x : tensor<?x32xf32> to tensor<?x32x!mica.int_rows<bits = 16, group = 32>>
    %y = mica.cast %c : tensor<?x32x!mica.int_rows<bits = 16, group = 32>> to tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
}

// -----

// Without activations of block-quantized weights, roles do not differ, and functions have no role.
// CHECK: module @alike
// CHECK-NOT: mica.row_role
// CHECK: func @main_small(
// CHECK-NOT: mica.row_role
// CHECK: func @main_large(
// CHECK-NOT: mica.row_role
module @alike {
  mica.weight @w : tensor<64x64x!mica.block<q4_0>>
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    return %x : tensor<?x32xf32>
  }
}

// -----

// expected-error @+1 {{functions are specialized already}}
module @a_role_says_so {
  func.func private @layer_prompt_large() attributes {mica.row_role = "prompt"}
}

// -----

// The functions of a multi-token prediction head have a role of their own, whether or not the others have one.
// CHECK: module @with_head attributes {mica.gemm_threshold = 8 : i64, mica.small_batch = 4 : i64}
// CHECK: func @main_small({{.*}} attributes {mica.max_rows = 4 : i64}
// CHECK: func @main_medium({{.*}} attributes {mica.max_rows = 8 : i64}
// CHECK: func @main_large({{.*}}) -> tensor<?x32xf32> {
// CHECK: func private @mtp_layer_small({{.*}} attributes {mica.max_rows = 4 : i64, mica.row_role = "draft"}
// CHECK: func @draft_small({{.*}} attributes {mica.max_rows = 4 : i64, mica.row_role = "draft"}
// CHECK: call @mtp_layer_small
// CHECK: func private @mtp_layer_medium({{.*}} attributes {mica.max_rows = 8 : i64, mica.row_role = "draft"}
// CHECK: func @draft_medium({{.*}} attributes {mica.max_rows = 8 : i64, mica.row_role = "draft"}
// CHECK: call @mtp_layer_medium
// CHECK: func private @mtp_layer_large({{.*}} attributes {mica.row_role = "draft"}
// CHECK: func @draft_large({{.*}} attributes {mica.row_role = "draft"}
// CHECK: call @mtp_layer_large
// CHECK-NOT: func
module @with_head {
  func.func private @mtp_layer(%x: tensor<?x32xf32>) -> tensor<?x32xf32> attributes {mica.row_role = "draft"} {
    return %x : tensor<?x32xf32>
  }
  func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    return %x : tensor<?x32xf32>
  }
  func.func @draft(%x: tensor<?x32xf32>) -> tensor<?x32xf32> attributes {mica.row_role = "draft"} {
    %y = call @mtp_layer(%x) : (tensor<?x32xf32>) -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
}
