// RUN: mica-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<?x4xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{'mica.rmsnorm' op result has shape 'tensor<?x5xf32>', expected that of x}}
  %0 = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x4xf32>, tensor<4xf32> -> tensor<?x5xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<5xf32>) {
  // expected-error @+1 {{'mica.rmsnorm' op the weight has size 5, expected 4 (last axis of x)}}
  %0 = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x4xf32>, tensor<5xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{'mica.rmsnorm' op eps must be a positive number, got 0.000000e+00}}
  %0 = mica.rmsnorm %x, %w eps(0.0) : tensor<?x4xf32>, tensor<4xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{'sideways' is not a valid norm_rounding}}
  %0 = mica.rmsnorm %x, %w eps(1.0e-05) rounding(sideways) : tensor<?x4xf32>, tensor<4xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{'mica.layernorm' op eps must be a positive number, got -1.000000e+00}}
  %0 = mica.layernorm %x, %w eps(-1.0) : tensor<?x4xf32>, tensor<4xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<5xf32>) {
  // expected-error @+1 {{'mica.layernorm' op the weight has size 5, expected 4 (last axis of x)}}
  %0 = mica.layernorm %x, %w eps(1.0e-05) : tensor<?x4xf32>, tensor<5xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<4xf32>, %b: tensor<5xf32>) {
  // expected-error @+1 {{'mica.layernorm' op the bias has size 5, expected 4 (last axis of x)}}
  %0 = mica.layernorm %x, %w bias(%b : tensor<5xf32>) eps(1.0e-05) : tensor<?x4xf32>, tensor<4xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %w: tensor<3x4xf32>) {
  // expected-error @+1 {{'mica.rmsnorm' op the weight is 'tensor<3x4xf32>', but x has no such heads: 'tensor<?x2x4xf32>'}}
  %0 = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x2x4xf32>, tensor<3x4xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<1x4xf32>) {
  // expected-error @+1 {{'mica.layernorm' op the weight is 'tensor<1x4xf32>', but x has no such heads: 'tensor<?x4xf32>'}}
  %0 = mica.layernorm %x, %w eps(1.0e-05) : tensor<?x4xf32>, tensor<1x4xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %w: tensor<2x4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{'mica.layernorm' op the bias has the shape of 'tensor<4xf32>', expected that of the weight}}
  %0 = mica.layernorm %x, %w bias(%b : tensor<4xf32>) eps(1.0e-05) : tensor<?x2x4xf32>, tensor<2x4xf32> -> tensor<?x2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>) {
  // expected-error @+1 {{'mica.l2norm' op eps must be a positive number, got 0.000000e+00}}
  %0 = mica.l2norm %x eps(0.0) : tensor<?x2x4xf32>
  return
}
