// RUN: mica-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope' op rotary_dim 6 is outside of head_dim 4}}
  %0 = mica.rope %x, %p half theta(1.0e+04) rotary_dim(6) : tensor<?x2x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope' op rotary_dim -2 is outside of head_dim 4}}
  %0 = mica.rope %x, %p half theta(1.0e+04) rotary_dim(-2) : tensor<?x2x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope' op rotates pairs of elements, so rotary_dim 3 must be even}}
  %0 = mica.rope %x, %p half theta(1.0e+04) rotary_dim(3) : tensor<?x2x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %p: tensor<5xi32>) {
  // expected-error @+1 {{'mica.rope' op operands and results differ in their number of rows: 'tensor<?x2x4xf32>' and 'tensor<5xi32>'}}
  %0 = mica.rope %x, %p half theta(1.0e+04) : tensor<?x2x4xf32>, tensor<5xi32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope' op theta must be above 1 and finite, got 1.000000e+00}}
  %0 = mica.rope %x, %p half theta(1.0) : tensor<?x2x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope' op theta must be above 1}}
  %0 = mica.rope %x, %p half theta(0x7FF8000000000000) : tensor<?x2x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope' op theta must be above 1 and finite, got INF}}
  %0 = mica.rope %x, %p half theta(0x7FF0000000000000) : tensor<?x2x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'quarter' is not a valid pairing}}
  %0 = mica.rope %x, %p quarter theta(1.0e+04) : tensor<?x2x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x?x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{must be heads [T, H, D] of f32 or bf16 values}}
  %0 = mica.rope %x, %p half theta(1.0e+04) : tensor<?x?x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(
    %x: tensor<?x3x4xf32>, %c: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.kv_append' op x has size 3, expected 2 (heads of the cache)}}
  %0 = mica.kv_append %x, %c[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x3x4xf32>, !mica.kv_cache<3 x 2 x 4 x f32>
  return
}

// -----

func.func @f(
    %x: tensor<?x2x8xf32>, %c: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.kv_append' op a head of x has size 8, expected 4 (head_dim of the cache)}}
  %0 = mica.kv_append %x, %c[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x8xf32>, !mica.kv_cache<3 x 2 x 4 x f32>
  return
}

// -----

func.func @f(
    %x: tensor<?x2x4xbf16>, %c: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.kv_append' op x of 'bf16' is narrower than the cache of 'f32'}}
  %0 = mica.kv_append %x, %c[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x4xbf16>, !mica.kv_cache<3 x 2 x 4 x f32>
  return
}

// -----

func.func @f(
    %x: tensor<?x2x4xf32>, %c: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<5xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.kv_append' op operands and results differ in their number of rows: 'tensor<?x2x4xf32>' and 'tensor<5xi32>'}}
  %0 = mica.kv_append %x, %c[%l] at(%s, %p : tensor<5xi32>, tensor<?xi32>) : tensor<?x2x4xf32>, !mica.kv_cache<3 x 2 x 4 x f32>
  return
}

// -----

func.func @f(
    %x: tensor<?x2x4xf32>, %c: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>,
    %p: tensor<5xi32>) {
  // expected-error @+1 {{'mica.kv_append' op operands and results differ in their number of rows: 'tensor<?x2x4xf32>' and 'tensor<5xi32>'}}
  %0 = mica.kv_append %x, %c[%l] at(%s, %p : tensor<?xi32>, tensor<5xi32>) : tensor<?x2x4xf32>, !mica.kv_cache<3 x 2 x 4 x f32>
  return
}

// -----

func.func @f(%c: !mica.kv_cache<3 x 2 x 4 x !mica.int8>, %l: index) {
  // expected-error @+1 {{'mica.kv_read' op reads 'f32' from a cache of '!mica.int8'}}
  %0 = mica.kv_read %c[%l] : !mica.kv_cache<3 x 2 x 4 x !mica.int8> -> tensor<?x?x2x4xf32>
  return
}

// -----

func.func @f(%c: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index) {
  // expected-error @+1 {{'mica.kv_read' op reads 'bf16' from a cache of 'f32'}}
  %0 = mica.kv_read %c[%l] : !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x?x2x4xbf16>
  return
}

// -----

func.func @f(%c: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index) {
  // expected-error @+1 {{'mica.kv_read' op the result has size 3, expected 2 (heads of the cache)}}
  %0 = mica.kv_read %c[%l] : !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x?x3x4xf32>
  return
}

// -----

func.func @f(%c: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index) {
  // expected-error @+1 {{'mica.kv_read' op reads 8 elements of heads of 4}}
  %0 = mica.kv_read %c[%l] : !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x?x2x8xf32>
  return
}

// -----

func.func @f(%c: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index) {
  // expected-error @+1 {{'mica.kv_read' op reads 0 elements of heads of 4}}
  %0 = mica.kv_read %c[%l] : !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x?x2x0xf32>
  return
}

// -----

func.func @f(%x: tensor<?x?x2x4xf32>) {
  // expected-error @+1 {{'mica.repeat_kv' op requires the same element type for all operands and results}}
  %0 = mica.repeat_kv %x times 2 : tensor<?x?x2x4xf32> -> tensor<?x?x4x4xbf16>
  return
}

// -----

func.func @f(%x: tensor<?x?x2x4xf32>) {
  // expected-error @+1 {{'mica.repeat_kv' op repeats at least once, got 0}}
  %0 = mica.repeat_kv %x times 0 : tensor<?x?x2x4xf32> -> tensor<?x?x2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x?x2x4xf32>) {
  // expected-error @+1 {{'mica.repeat_kv' op repeats at least once, got -1}}
  %0 = mica.repeat_kv %x times -1 : tensor<?x?x2x4xf32> -> tensor<?x?x2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x?x2x4xf32>) {
  // expected-error @+1 {{'mica.repeat_kv' op the result has size 4, expected 6 (heads of x times the count)}}
  %0 = mica.repeat_kv %x times 3 : tensor<?x?x2x4xf32> -> tensor<?x?x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x?x2x4xf32>) {
  // expected-error @+1 {{'mica.repeat_kv' op a head of the result has size 8, expected 4 (a head of x)}}
  %0 = mica.repeat_kv %x times 2 : tensor<?x?x2x4xf32> -> tensor<?x?x4x8xf32>
  return
}

// -----

func.func @f(
    %q: tensor<?x3x4xf32>, %k: tensor<?x?x2x4xf32>, %v: tensor<?x?x2x4xf32>, %s: tensor<?xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.attention' op has 3 query heads, not a multiple of 2 key heads}}
  %0 = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(1.0)
      : tensor<?x3x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32> -> tensor<?x3x4xf32>
  return
}

// -----

func.func @f(
    %q: tensor<?x2x4xf32>, %k: tensor<?x?x0x4xf32>, %v: tensor<?x?x0x4xf32>, %s: tensor<?xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.attention' op has 2 query heads, not a multiple of 0 key heads}}
  %0 = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(1.0)
      : tensor<?x2x4xf32>, tensor<?x?x0x4xf32>, tensor<?x?x0x4xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @f(
    %q: tensor<?x2x4xf32>, %k: tensor<?x?x2x4xf32>, %v: tensor<?x?x1x4xf32>, %s: tensor<?xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.attention' op v has size 1, expected 2 (heads of k)}}
  %0 = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(1.0)
      : tensor<?x2x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x1x4xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @f(
    %q: tensor<?x2x8xf32>, %k: tensor<?x?x2x4xf32>, %v: tensor<?x?x2x4xf32>, %s: tensor<?xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.attention' op a head of q has size 8, expected 4 (a head of k)}}
  %0 = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(1.0)
      : tensor<?x2x8xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @f(
    %q: tensor<?x2x4xf32>, %k: tensor<?x?x2x4xf32>, %v: tensor<?x?x2x4xf32>, %s: tensor<?xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.attention' op a head of the result has size 8, expected 4 (a head of v)}}
  %0 = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(1.0)
      : tensor<?x2x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32> -> tensor<?x2x8xf32>
  return
}

// -----

func.func @f(
    %q: tensor<?x2x4xf32>, %k: tensor<?x?x2x4xf32>, %v: tensor<?x?x2x4xf32>, %s: tensor<?xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.attention' op the result has size 4, expected 2 (heads of q)}}
  %0 = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(1.0)
      : tensor<?x2x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @f(
    %q: tensor<?x2x4xf32>, %k: tensor<?x?x2x4xf32>, %v: tensor<?x?x2x4xf32>, %s: tensor<?xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.attention' op operands and results differ in their number of rows: 'tensor<?x2x4xf32>' and 'tensor<5x2x4xf32>'}}
  %0 = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(1.0)
      : tensor<?x2x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32> -> tensor<5x2x4xf32>
  return
}

// -----

func.func @f(
    %q: tensor<?x2x4xf32>, %k: tensor<?x?x2x4xf32>, %v: tensor<?x?x2x4xf32>, %s: tensor<5xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.attention' op operands and results differ in their number of rows: 'tensor<?x2x4xf32>' and 'tensor<5xi32>'}}
  %0 = mica.attention %q, %k, %v at(%s, %p : tensor<5xi32>, tensor<?xi32>) causal scale(1.0)
      : tensor<?x2x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @f(
    %q: tensor<?x2x4xf32>, %k: tensor<?x?x2x4xf32>, %v: tensor<?x?x2x4xf32>, %s: tensor<?xi32>,
    %p: tensor<5xi32>) {
  // expected-error @+1 {{'mica.attention' op operands and results differ in their number of rows: 'tensor<?x2x4xf32>' and 'tensor<5xi32>'}}
  %0 = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<5xi32>) causal scale(1.0)
      : tensor<?x2x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @f(
    %q: tensor<?x2x4xf32>, %k: tensor<?x?x2x4xf32>, %v: tensor<?x?x2x4xf32>, %s: tensor<?xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.attention' op window must be at least 1, got 0}}
  %0 = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(1.0) window(0)
      : tensor<?x2x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @f(
    %q: tensor<?x2x4xf32>, %k: tensor<?x?x2x4xf32>, %v: tensor<?x?x2x4xf32>, %s: tensor<?xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.attention' op softcap must be a positive number, got -5.000000e+01}}
  %0 = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(1.0) softcap(-5.0e+01)
      : tensor<?x2x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @f(
    %q: tensor<?x2x4xf32>, %k: tensor<?x?x2x4xf32>, %v: tensor<?x?x2x4xf32>, %s: tensor<?xi32>,
    %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.attention' op scale must be a positive number, got 0.000000e+00}}
  %0 = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.0)
      : tensor<?x2x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope' op scales 3 frequencies, but rotates 2 pairs}}
  %0 = mica.rope %x, %p lengths(%p : tensor<?xi32>) half theta(1.0e+04) scaling(#mica.longrope_scaling<short_factors = [1.0, 2.0, 3.0], long_factors = [1.0, 2.0, 3.0], attention_factor = 1.0, original_context = 8>) : tensor<?x2x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope' op rotates 3 pairs, but there are 2}}
  %0 = mica.rope %x, %p half theta(1.0e+04) scaling(#mica.proportional_scaling<pairs = 3, factor = 1.0>) : tensor<?x2x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x2x2xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope' op scales theta for more pairs than one, but rotates only one}}
  %0 = mica.rope %x, %p lengths(%p : tensor<?xi32>) half theta(1.0e+04) scaling(#mica.dynamic_scaling<factor = 2.0, original_context = 8>) : tensor<?x2x2xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope' op has a scaling that depends on the sequence length: add lengths}}
  %0 = mica.rope %x, %p half theta(1.0e+04) scaling(#mica.dynamic_scaling<factor = 2.0, original_context = 8>) : tensor<?x2x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope' op has lengths, but its scaling does not depend on them: remove them}}
  %0 = mica.rope %x, %p lengths(%p : tensor<?xi32>) half theta(1.0e+04) : tensor<?x2x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%p: tensor<?xi32>, %n: tensor<5xi32>) {
  // expected-error @+1 {{'mica.rope_table' op operands and results differ in their number of rows: 'tensor<?xi32>' and 'tensor<5xi32>'}}
  %0 = mica.rope_table %p lengths(%n : tensor<5xi32>) rotary_dim(4) theta(1.0e+04) scaling(#mica.dynamic_scaling<factor = 2.0, original_context = 8>) : tensor<?xi32> -> tensor<?x2x2xf32>
  return
}

// -----

func.func @f(%p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope_table' op scales 1 frequencies, but rotates 2 pairs}}
  %0 = mica.rope_table %p lengths(%p : tensor<?xi32>) rotary_dim(4) theta(1.0e+04) scaling(#mica.longrope_scaling<short_factors = [1.0], long_factors = [1.0], attention_factor = 1.0, original_context = 8>) : tensor<?xi32> -> tensor<?x2x2xf32>
  return
}

// -----

func.func @f(%p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.sinusoid' op computes as many sines as cosines, at least two, but a row has 5 elements}}
  %0 = mica.sinusoid %p offset(2) : tensor<?xi32> -> tensor<?x5xf32>
  return
}

// -----

func.func @f(%p: tensor<5xi32>) {
  // expected-error @+1 {{'mica.sinusoid' op operands and results differ in their number of rows: 'tensor<5xi32>' and 'tensor<?x8xf32>'}}
  %0 = mica.sinusoid %p offset(2) : tensor<5xi32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.sinusoid' op has the padding_idx -1, which is the row of no position}}
  %0 = mica.sinusoid %p offset(2) padding_idx(-1) : tensor<?xi32> -> tensor<?x8xf32>
  return
}

// -----

func.func @f(%a: tensor<?x4x8xf32>, %b: tensor<5x4x8xf32>) {
  // expected-error @+1 {{'mica.concat_heads' op operands and results differ in their number of rows: 'tensor<5x4x8xf32>' and 'tensor<?x4x16xf32>'}}
  %0 = mica.concat_heads %a, %b : tensor<?x4x8xf32>, tensor<5x4x8xf32> -> tensor<?x4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<?x4x8xf32>, %b: tensor<?x4x8xbf16>) {
  // expected-error @+1 {{'mica.concat_heads' op joins heads of its own element type}}
  %0 = mica.concat_heads %a, %b : tensor<?x4x8xf32>, tensor<?x4x8xbf16> -> tensor<?x4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<?x4x8xf32>, %b: tensor<?x2x8xf32>) {
  // expected-error @+1 {{'mica.concat_heads' op has a part of 2 heads, but the result has 4}}
  %0 = mica.concat_heads %a, %b : tensor<?x4x8xf32>, tensor<?x2x8xf32> -> tensor<?x4x16xf32>
  return
}

// -----

func.func @f(%a: tensor<?x4x8xf32>, %b: tensor<?x1x4xf32>) {
  // expected-error @+1 {{'mica.concat_heads' op a head of the result has size 13, expected 12 (both parts)}}
  %0 = mica.concat_heads %a, %b : tensor<?x4x8xf32>, tensor<?x1x4xf32> -> tensor<?x4x13xf32>
  return
}

// -----

func.func @f(%q: tensor<?x4x8xf32>, %k: tensor<?x?x2x8xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.attention' op alibi has size 2, expected 4 (a slope per query head)}}
  %0 = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(1.0) alibi([0.5, 0.25])
      : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<?x4x8xf32>, %k: tensor<?x?x2x8xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>, %t: tensor<2xf32>) {
  // expected-error @+1 {{'mica.attention' op sinks has size 2, expected 4 (a number per query head)}}
  %0 = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) sinks(%t : tensor<2xf32>) causal scale(1.0)
      : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @f(%q: tensor<?x8x4xf32>, %k: tensor<?x?x1x4xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.attention' op is cut into tasks of 3 query heads, but 8 share a key head}}
  %0 = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) tiling(<rows = 1, chunk = 64, split = true, heads = 3>) : tensor<?x8x4xf32>, tensor<?x?x1x4xf32>, tensor<?x?x1x4xf32> -> tensor<?x8x4xf32>
  return
}
