// oneDNN is used for bf16 if the target has bf16 dot products, and for f32 if it has AVX-512.
// RUN: mica-opt %s --cpu-set-target=cpu=cooperlake --cpu-select-kernels="large-batch=32 min-work=1000000" | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: mica-opt %s --cpu-set-target=cpu=x86-64-v4 --cpu-select-kernels="large-batch=32 min-work=1000000" | FileCheck %s --check-prefixes=CHECK,F32
// RUN: mica-opt %s --cpu-set-target=cpu=x86-64-v3 --cpu-select-kernels="large-batch=32 min-work=1000000" | FileCheck %s --check-prefix=NONE --implicit-check-not=onednn
// RUN: mica-opt %s --cpu-set-target=cpu=sapphirerapids --cpu-select-kernels="large-batch=32 min-work=1000000" | FileCheck %s --check-prefix=TILES

// A module without a target is compiled for x86-64-v4.
// RUN: mica-opt %s --cpu-select-kernels="large-batch=32 min-work=1000000" | FileCheck %s --check-prefixes=CHECK,F32

// AMX tiles multiply bf16, but not f32, at any number of rows.
// TILES-LABEL: func @in_tiles
// CHECK-LABEL: func @in_tiles
func.func @in_tiles(%x: tensor<?x512xf32>, %b: tensor<?x512xbf16>, %w: tensor<512x512xf32>, %n: tensor<512x512xbf16>)
    -> (tensor<?x512xf32>, tensor<?x512xf32>) {
  // TILES: mica.linear {{.*}} kernel(onednn)
  %y = mica.linear %x, %w : tensor<?x512xf32>, tensor<512x512xf32> -> tensor<?x512xf32>
  // TILES: mica.linear {{.*}} kernel(generated)
  %z = mica.linear %b, %n : tensor<?x512xbf16>, tensor<512x512xbf16> -> tensor<?x512xf32>
  return %y, %z : tensor<?x512xf32>, tensor<?x512xf32>
}

// Integer activations with a scale per group need generated kernels at any number of rows.
// CHECK-LABEL: func @blocks(
// TILES-LABEL: func @blocks(
func.func @blocks(%x: tensor<?x512x!mica.int_rows<bits = 8, group = 32>>, %w: tensor<512x512x!mica.block<q4_k>>) -> tensor<?x512xf32> {
  // CHECK: mica.linear {{.*}} kernel(generated)
  // TILES: mica.linear {{.*}} kernel(generated)
  %y = mica.linear %x, %w : tensor<?x512x!mica.int_rows<bits = 8, group = 32>>, tensor<512x512x!mica.block<q4_k>> -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}

// Block-quantized weights with float activations are expanded. Many rows use the kernel of these floats: oneDNN, also on
// targets with AMX tiles.
// CHECK-LABEL: func @expanded(
// TILES-LABEL: func @expanded(
func.func @expanded(%b: tensor<?x512xbf16>, %x: tensor<?x512xf32>, %w: tensor<512x512x!mica.block<q4_k>>, %gu: tensor<1024x512x!mica.block<q8_0>>)
    -> (tensor<?x512xf32>, tensor<?x512xf32>, tensor<?x512xf32>, tensor<?x512xf32>) {
  // ALL: mica.linear {{.*}} kernel(onednn) : tensor<?x512xbf16>
  // F32: mica.linear {{.*}} kernel(generated) : tensor<?x512xbf16>
  // TILES: mica.linear {{.*}} kernel(onednn) : tensor<?x512xbf16>
  %y = mica.linear %b, %w : tensor<?x512xbf16>, tensor<512x512x!mica.block<q4_k>> -> tensor<?x512xf32>
  // CHECK: mica.linear {{.*}} kernel(onednn) : tensor<?x512xf32>
  // TILES: mica.linear {{.*}} kernel(onednn) : tensor<?x512xf32>
  %z = mica.linear %x, %w : tensor<?x512xf32>, tensor<512x512x!mica.block<q4_k>> -> tensor<?x512xf32>
  // ALL: mica.gated_linear {{.*}} kernel(onednn)
  // F32: mica.gated_linear {{.*}} kernel(generated)
  // TILES: mica.gated_linear {{.*}} kernel(onednn)
  %g = mica.gated_linear %b, %gu silu : tensor<?x512xbf16>, tensor<1024x512x!mica.block<q8_0>> -> tensor<?x512xf32>
  // CHECK: mica.lm_head {{.*}} kernel(generated)
  %l = mica.lm_head %b, %w : tensor<?x512xbf16>, tensor<512x512x!mica.block<q4_k>> -> tensor<?x512xf32>
  return %y, %z, %g, %l : tensor<?x512xf32>, tensor<?x512xf32>, tensor<?x512xf32>, tensor<?x512xf32>
}

// Up to the GEMM threshold, and in matmuls that are too small for a library call, generated kernels expand blocks.
// CHECK-LABEL: func @expanded_for_several_rows(
// TILES-LABEL: func @expanded_for_several_rows(
func.func @expanded_for_several_rows(%b: tensor<?x512xbf16>, %w: tensor<512x512x!mica.block<q4_k>>) -> tensor<?x512xf32>
    attributes {mica.max_rows = 16 : i64, mica.row_role = "prompt"} {
  // CHECK: mica.linear {{.*}} kernel(generated)
  // TILES: mica.linear {{.*}} kernel(generated)
  %y = mica.linear %b, %w : tensor<?x512xbf16>, tensor<512x512x!mica.block<q4_k>> -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}

// CHECK-LABEL: func @expanded_for_a_small_product(
// TILES-LABEL: func @expanded_for_a_small_product(
func.func @expanded_for_a_small_product(%b: tensor<?x64xbf16>, %w: tensor<64x64x!mica.block<q4_0>>) -> tensor<?x64xf32> {
  // CHECK: mica.linear {{.*}} kernel(generated)
  // TILES: mica.linear {{.*}} kernel(generated)
  %y = mica.linear %b, %w : tensor<?x64xbf16>, tensor<64x64x!mica.block<q4_0>> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: func @few
func.func @few(%x: tensor<?x512xf32>, %w: tensor<512x512xf32>) -> tensor<?x512xf32> attributes {mica.max_rows = 16 : i64} {
  // CHECK: mica.linear {{.*}} kernel(generated)
  %y = mica.linear %x, %w : tensor<?x512xf32>, tensor<512x512xf32> -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}

// CHECK-LABEL: func @many
// NONE-LABEL: func @many
func.func @many(%x: tensor<?x512xf32>, %b: tensor<?x512xbf16>, %w: tensor<512x512xf32>, %n: tensor<512x512xbf16>, %gu: tensor<1024x512xf32>)
    -> (tensor<?x512xf32>, tensor<?x512xf32>, tensor<?x512xf32>, tensor<?x512xf32>) {
  // CHECK: mica.linear {{.*}} kernel(onednn)
  // NONE: mica.linear {{.*}} kernel(generated)
  %y = mica.linear %x, %w : tensor<?x512xf32>, tensor<512x512xf32> -> tensor<?x512xf32>
  // ALL: mica.linear {{.*}} kernel(onednn) : tensor<?x512xbf16>
  // F32: mica.linear {{.*}} kernel(generated) : tensor<?x512xbf16>
  %z = mica.linear %b, %n : tensor<?x512xbf16>, tensor<512x512xbf16> -> tensor<?x512xf32>
  // CHECK: mica.gated_linear {{.*}} kernel(onednn)
  %g = mica.gated_linear %x, %gu silu : tensor<?x512xf32>, tensor<1024x512xf32> -> tensor<?x512xf32>
  // One row out of many needs logits.
  // CHECK: mica.lm_head {{.*}} kernel(generated)
  %l = mica.lm_head %x, %w : tensor<?x512xf32>, tensor<512x512xf32> -> tensor<?x512xf32>
  return %y, %z, %g, %l : tensor<?x512xf32>, tensor<?x512xf32>, tensor<?x512xf32>, tensor<?x512xf32>
}

// 32 rows times 64 x 64 are fewer multiply-adds than min-work.
// CHECK-LABEL: func @no_library_for_small_products
func.func @no_library_for_small_products(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32> {
  // CHECK: mica.linear {{.*}} kernel(generated)
  %y = mica.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: func @no_second_opinion
func.func @no_second_opinion(%x: tensor<?x512xf32>, %w: tensor<512x512xf32>) -> tensor<?x512xf32> {
  // CHECK: mica.linear {{.*}} kernel(generated)
  %y = mica.linear %x, %w kernel(generated) : tensor<?x512xf32>, tensor<512x512xf32> -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}

// Few rows: the smallest tasks.
// CHECK-LABEL: func @attention_small
func.func @attention_small(%q: tensor<?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x8x64xf32>
    attributes {mica.max_rows = 16 : i64} {
  // CHECK: mica.attention {{.*}} scale(1.250000e-01) tiling(<rows = 1, chunk = 512, split = true>) :
  %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.125)
      : tensor<?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32> -> tensor<?x8x64xf32>
  return %y : tensor<?x8x64xf32>
}

// Batches of several rows are mostly rows of a prompt, for all kernels.
// CHECK-LABEL: func @attention_medium
func.func @attention_medium(%q: tensor<?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>, %w: tensor<512x512xf32>)
    -> (tensor<?x8x64xf32>, tensor<?x512xf32>) attributes {mica.max_rows = 32 : i64} {
  // CHECK: mica.attention {{.*}} tiling(<rows = 8, chunk = 512, split = false>) :
  %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.125)
      : tensor<?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32> -> tensor<?x8x64xf32>
  %m = mica.merge_heads %y : tensor<?x8x64xf32> to tensor<?x512xf32>
  // CHECK: mica.linear {{.*}} kernel(generated)
  %z = mica.linear %m, %w : tensor<?x512xf32>, tensor<512x512xf32> -> tensor<?x512xf32>
  return %y, %z : tensor<?x8x64xf32>, tensor<?x512xf32>
}

// A prompt of few rows is tiled like one of many rows.
// CHECK-LABEL: func @attention_prompt
func.func @attention_prompt(%q: tensor<?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>) -> tensor<?x8x64xf32>
    attributes {mica.max_rows = 16 : i64, mica.row_role = "prompt"} {
  // CHECK: mica.attention {{.*}} tiling(<rows = 8, chunk = 512, split = false>) :
  %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.125)
      : tensor<?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32> -> tensor<?x8x64xf32>
  return %y : tensor<?x8x64xf32>
}

// Many rows: tiles of about 32 pairs of a row and a query head of the group, and the same chunk size.
// CHECK-LABEL: func @attention_large
func.func @attention_large(%q: tensor<?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %e: tensor<?x?x8x64xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>)
    -> (tensor<?x8x64xf32>, tensor<?x8x64xf32>, tensor<?x8x64xf32>) {
  // CHECK: mica.attention {{.*}} tiling(<rows = 8, chunk = 512, split = false>) :
  %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.125)
      : tensor<?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32> -> tensor<?x8x64xf32>
  // CHECK: mica.attention {{.*}} tiling(<rows = 16, chunk = 512, split = false>) :
  %z = mica.attention %q, %e, %e at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.125)
      : tensor<?x8x64xf32>, tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32> -> tensor<?x8x64xf32>
  // A tiling in the IR is kept.
  // CHECK: mica.attention {{.*}} tiling(<rows = 2, chunk = 64, split = false>) :
  %w = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.125) tiling(<rows = 2, chunk = 64, split = false>)
      : tensor<?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32> -> tensor<?x8x64xf32>
  return %y, %z, %w : tensor<?x8x64xf32>, tensor<?x8x64xf32>, tensor<?x8x64xf32>
}

// oneDNN is not used for few rows, however large the matrix is.
// CHECK-LABEL: func @no_library_for_small_batch
// CHECK-NOT: onednn
// CHECK: return
func.func @no_library_for_small_batch(%x: tensor<?x512xf32>, %gu: tensor<65536x512xf32>) -> tensor<?x32768xf32> attributes {mica.max_rows = 16 : i64} {
  %y = mica.gated_linear %x, %gu silu : tensor<?x512xf32>, tensor<65536x512xf32> -> tensor<?x32768xf32>
  return %y : tensor<?x32768xf32>
}

// Only matmuls with a whole matrix and attention have alternatives; experts, routers, norms and embeddings have one kernel.
// CHECK-LABEL: func @no_choice_for_the_rest
// CHECK-NOT: kernel(
// CHECK-NOT: tiling(
// CHECK: return
func.func @no_choice_for_the_rest(%tokens: tensor<?xi32>, %table: tensor<512x512xf32>, %norm: tensor<512xf32>, %gate: tensor<4x512xf32>,
    %up: tensor<4x512x512xf32>) -> tensor<?x512xf32> {
  %x = mica.embedding %tokens, %table : tensor<?xi32>, tensor<512x512xf32> -> tensor<?x512xf32>
  %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x512xf32>, tensor<512xf32> -> tensor<?x512xf32>
  %w, %e = mica.moe_gate %n, %gate softmax k(2) : tensor<?x512xf32>, tensor<4x512xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  %m = mica.moe_experts %n, %w, %e, %up, %up up(%up : tensor<4x512x512xf32>) silu inner(512)
      : tensor<?x512xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x512x512xf32>, tensor<4x512x512xf32> -> tensor<?x512xf32>
  %y = mica.silu %m : tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}
