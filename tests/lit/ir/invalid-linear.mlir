// RUN: mica-opt %s --split-input-file --verify-diagnostics

func.func @f(%t: tensor<?xi32>, %w: tensor<6x4xf32>) {
  // expected-error @+1 {{'mica.embedding' op operands and results differ in their number of rows: 'tensor<?xi32>' and 'tensor<5x4xf32>'}}
  %0 = mica.embedding %t, %w : tensor<?xi32>, tensor<6x4xf32> -> tensor<5x4xf32>
  return
}

// -----

func.func @f(%t: tensor<?xi32>, %w: tensor<6x4xf32>) {
  // expected-error @+1 {{'mica.embedding' op a row of the result has size 6, expected 4 (a row of the table)}}
  %0 = mica.embedding %t, %w : tensor<?xi32>, tensor<6x4xf32> -> tensor<?x6xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<6x4xf32>) {
  // expected-error @+1 {{'mica.linear' op operands and results differ in their number of rows: 'tensor<?x4xf32>' and 'tensor<5x6xf32>'}}
  %0 = mica.linear %x, %w : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<5x6xf32>
  return
}

// -----

func.func @f(%x: tensor<?x5xf32>, %w: tensor<6x4xf32>) {
  // expected-error @+1 {{'mica.linear' op a row of x has size 5, expected 4 (columns of the weight [N, K])}}
  %0 = mica.linear %x, %w : tensor<?x5xf32>, tensor<6x4xf32> -> tensor<?x6xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<6x4xf32>) {
  // expected-error @+1 {{'mica.linear' op a row of the result has size 4, expected 6 (rows of the weight [N, K])}}
  %0 = mica.linear %x, %w : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<6x4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{'mica.linear' op the bias has size 4, expected 6 (a row of the result)}}
  %0 = mica.linear %x, %w bias(%b : tensor<4xf32>) : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x6xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<6x4xf32>) {
  // expected-error @+1 {{'mica.linear' op residual has type 'tensor<?x4xf32>', expected that of the result}}
  %0 = mica.linear %x, %w residual(%x : tensor<?x4xf32>) : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x6xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<6x4xf32>) {
  // expected-error @+1 {{'by_hand' is not a valid kernel}}
  %0 = mica.linear %x, %w kernel(by_hand) : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x6xf32>
  return
}

// -----

func.func @f(%x: tensor<?x5xf32>, %w: tensor<6x4xf32>) {
  // expected-error @+1 {{'mica.lm_head' op a row of x has size 5, expected 4 (columns of the weight [N, K])}}
  %0 = mica.lm_head %x, %w : tensor<?x5xf32>, tensor<6x4xf32> -> tensor<?x6xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<6x4xf32>) {
  // expected-error @+1 {{'mica.linear' op result #0 must be rows [T, C] of 32-bit float values}}
  %0 = mica.linear %x, %w : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x6xbf16>
  return
}

// -----

func.func @f(%x: tensor<?x3x4xf32>, %w: tensor<3x6x4xf32>) {
  // expected-error @+1 {{'mica.head_linear' op operands and results differ in their number of rows: 'tensor<?x3x4xf32>' and 'tensor<5x3x6xf32>'}}
  %0 = mica.head_linear %x, %w : tensor<?x3x4xf32>, tensor<3x6x4xf32> -> tensor<5x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %w: tensor<3x6x4xf32>) {
  // expected-error @+1 {{'mica.head_linear' op x has size 2, expected 3 (matrices of the weight [H, N, K])}}
  %0 = mica.head_linear %x, %w : tensor<?x2x4xf32>, tensor<3x6x4xf32> -> tensor<?x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<?x3x4xf32>, %w: tensor<3x6x4xf32>) {
  // expected-error @+1 {{'mica.head_linear' op the result has size 1, expected 3 (matrices of the weight [H, N, K])}}
  %0 = mica.head_linear %x, %w : tensor<?x3x4xf32>, tensor<3x6x4xf32> -> tensor<?x1x6xf32>
  return
}

// -----

func.func @f(%x: tensor<?x3x5xf32>, %w: tensor<3x6x4xf32>) {
  // expected-error @+1 {{'mica.head_linear' op a head of x has size 5, expected 4 (columns of the weight [H, N, K])}}
  %0 = mica.head_linear %x, %w : tensor<?x3x5xf32>, tensor<3x6x4xf32> -> tensor<?x3x6xf32>
  return
}

// -----

func.func @f(%x: tensor<?x3x4xf32>, %w: tensor<3x6x4xf32>) {
  // expected-error @+1 {{'mica.head_linear' op a head of the result has size 4, expected 6 (rows of the weight [H, N, K])}}
  %0 = mica.head_linear %x, %w : tensor<?x3x4xf32>, tensor<3x6x4xf32> -> tensor<?x3x4xf32>
  return
}
