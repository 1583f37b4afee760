// RUN: mica-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'mica.split' op operands and results differ in their number of rows: 'tensor<?x4xf32>' and 'tensor<5x2xf32>'}}
  %0, %1 = mica.split %x : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<5x2xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'mica.split' op a row of x has size 4, expected 5 (columns of all parts)}}
  %0, %1 = mica.split %x : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<?x3xf32>
  return
}

// -----

func.func @f(%p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope_table' op rotary_dim must be positive and even, got 0}}
  %0 = mica.rope_table %p rotary_dim(0) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x2xf32>
  return
}

// -----

func.func @f(%p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope_table' op rotary_dim must be positive and even, got 3}}
  %0 = mica.rope_table %p rotary_dim(3) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x2xf32>
  return
}

// -----

func.func @f(%p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope_table' op theta must be above 1 and finite, got 1.000000e+00}}
  %0 = mica.rope_table %p rotary_dim(4) theta(1.0) : tensor<?xi32> -> tensor<?x2x2xf32>
  return
}

// -----

func.func @f(%p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope_table' op the result has size 3, expected 2 (cosine and sine)}}
  %0 = mica.rope_table %p rotary_dim(4) theta(1.0e+04) : tensor<?xi32> -> tensor<?x3x2xf32>
  return
}

// -----

func.func @f(%p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope_table' op a row of the result has size 4, expected 2 (half of rotary_dim)}}
  %0 = mica.rope_table %p rotary_dim(4) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @f(%p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.rope_table' op operands and results differ in their number of rows: 'tensor<?xi32>' and 'tensor<5x2x2xf32>'}}
  %0 = mica.rope_table %p rotary_dim(4) theta(1.0e+04) : tensor<?xi32> -> tensor<5x2x2xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x32xf32>, %t: tensor<?x2x2xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x bf16>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.qkv_append' op key cache '!mica.kv_cache<3 x 2 x 4 x f32>' and value cache '!mica.kv_cache<3 x 2 x 4 x bf16>' differ}}
  %0, %1, %2 = mica.qkv_append %x, %t, %k, %v[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
      : tensor<?x32xf32>, tensor<?x2x2xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x bf16> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x32xf32>, %t: tensor<?x2x2xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.qkv_append' op a head of q has size 8, expected 4 (head_dim of the cache)}}
  %0, %1, %2 = mica.qkv_append %x, %t, %k, %v[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
      : tensor<?x32xf32>, tensor<?x2x2xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x4x8xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x30xf32>, %t: tensor<?x2x2xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.qkv_append' op a row of qkv has size 30, expected 32 (heads of q, keys and values times head_dim)}}
  %0, %1, %2 = mica.qkv_append %x, %t, %k, %v[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
      : tensor<?x30xf32>, tensor<?x2x2xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x32xf32>, %t: tensor<?x3x2xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.qkv_append' op the table has size 3, expected 2 (cosine and sine)}}
  %0, %1, %2 = mica.qkv_append %x, %t, %k, %v[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
      : tensor<?x32xf32>, tensor<?x3x2xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x32xf32>, %t: tensor<?x2x3xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.qkv_append' op table rotates 6 elements of a head of 4}}
  %0, %1, %2 = mica.qkv_append %x, %t, %k, %v[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
      : tensor<?x32xf32>, tensor<?x2x3xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x32xf32>, %t: tensor<?x2x2xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %n: tensor<4xf32>) {
  // expected-error @+1 {{'mica.qkv_append' op has both norms and eps or none of them}}
  %0, %1, %2 = mica.qkv_append %x, %t, %k, %v[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) norms(%n, %n : tensor<4xf32>, tensor<4xf32>) half
      : tensor<?x32xf32>, tensor<?x2x2xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x32xf32>, %t: tensor<?x2x2xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.qkv_append' op has both norms and eps or none of them}}
  %0, %1, %2 = mica.qkv_append %x, %t, %k, %v[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half eps(1.0e-05)
      : tensor<?x32xf32>, tensor<?x2x2xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x32xf32>, %t: tensor<?x2x2xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %n: tensor<5xf32>) {
  // expected-error @+1 {{'mica.qkv_append' op a norm has size 5, expected 4 (head_dim)}}
  %0, %1, %2 = mica.qkv_append %x, %t, %k, %v[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) norms(%n, %n : tensor<5xf32>, tensor<5xf32>) half eps(1.0e-05)
      : tensor<?x32xf32>, tensor<?x2x2xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x32xf32>, %t: tensor<5x2x2xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.qkv_append' op operands and results differ in their number of rows: 'tensor<?x32xf32>' and 'tensor<5x2x2xf32>'}}
  %0, %1, %2 = mica.qkv_append %x, %t, %k, %v[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
      : tensor<?x32xf32>, tensor<5x2x2xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x32xf32>, %t: tensor<?x2x2xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<5xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.qkv_append' op operands and results differ in their number of rows: 'tensor<?x32xf32>' and 'tensor<5xi32>'}}
  %0, %1, %2 = mica.qkv_append %x, %t, %k, %v[%l] at(%s, %p : tensor<5xi32>, tensor<?xi32>) half
      : tensor<?x32xf32>, tensor<?x2x2xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x32xf32>, %t: tensor<?x2x2xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>, %p: tensor<5xi32>) {
  // expected-error @+1 {{'mica.qkv_append' op operands and results differ in their number of rows: 'tensor<?x32xf32>' and 'tensor<5xi32>'}}
  %0, %1, %2 = mica.qkv_append %x, %t, %k, %v[%l] at(%s, %p : tensor<?xi32>, tensor<5xi32>) half
      : tensor<?x32xf32>, tensor<?x2x2xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x32xf32>, %t: tensor<?x2x2xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.qkv_append' op operands and results differ in their number of rows: 'tensor<?x32xf32>' and 'tensor<5x4x4xf32>'}}
  %0, %1, %2 = mica.qkv_append %x, %t, %k, %v[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
      : tensor<?x32xf32>, tensor<?x2x2xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<5x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x5xf32>, %w: tensor<128x4xf32>) {
  // expected-error @+1 {{'mica.gated_linear' op a row of x has size 5, expected 4 (columns of the weight)}}
  %0 = mica.gated_linear %x, %w silu : tensor<?x5xf32>, tensor<128x4xf32> -> tensor<?x10xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<128x4xf32>) {
  // expected-error @+1 {{'mica.gated_linear' op the weight has size 128, expected 256 (gate and up in padded blocks)}}
  %0 = mica.gated_linear %x, %w silu : tensor<?x4xf32>, tensor<128x4xf32> -> tensor<?x65xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<128x4xf32>) {
  // expected-error @+1 {{'mica.gated_linear' op operands and results differ in their number of rows: 'tensor<?x4xf32>' and 'tensor<5x10xf32>'}}
  %0 = mica.gated_linear %x, %w silu : tensor<?x4xf32>, tensor<128x4xf32> -> tensor<5x10xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<128x4xf32>) {
  // expected-error @+1 {{'tanh' is not a valid activation}}
  %0 = mica.gated_linear %x, %w tanh : tensor<?x4xf32>, tensor<128x4xf32> -> tensor<?x10xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x32xf32>, %t: tensor<?x2x2xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.qkv_append' op has a weight_offset, but no norms}}
  %0, %1, %2 = mica.qkv_append %x, %t, %k, %v[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half weight_offset(1.0)
      : tensor<?x32xf32>, tensor<?x2x2xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x4x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x12xf32>, %y: tensor<?x20xf32>, %t: tensor<?x2x2xf32>, %k: !mica.kv_cache<3 x 2 x 4 x f32>,
    %v: !mica.kv_cache<3 x 2 x 4 x f32>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.qkv_append' op has parts that end inside queries, keys or values}}
  %0, %1, %2 = mica.qkv_append %x parts(%y : tensor<?x20xf32>), %t, %k, %v[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half
      : tensor<?x12xf32>, tensor<?x2x2xf32>, !mica.kv_cache<3 x 2 x 4 x f32>, !mica.kv_cache<3 x 2 x 4 x f32> -> tensor<?x4x4xf32>
  return
}
