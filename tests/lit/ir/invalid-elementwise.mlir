// RUN: mica-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'mica.split_heads' op does not change the element type}}
  %0 = mica.split_heads %x : tensor<?x4xf32> to tensor<?x2x2xbf16>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'mica.split_heads' op operands and results differ in their number of rows: 'tensor<?x4xf32>' and 'tensor<5x2x2xf32>'}}
  %0 = mica.split_heads %x : tensor<?x4xf32> to tensor<5x2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'mica.split_heads' op a row has size 4, expected 6 (heads times head_dim)}}
  %0 = mica.split_heads %x : tensor<?x4xf32> to tensor<?x2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>) {
  // expected-error @+1 {{'mica.merge_heads' op a row has size 9, expected 8 (heads times head_dim)}}
  %0 = mica.merge_heads %x : tensor<?x2x4xf32> to tensor<?x9xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %r: tensor<?xi32>) {
  // expected-error @+1 {{'mica.select_rows' op does not change the element type}}
  %0 = mica.select_rows %x, %r : tensor<?x4xf32>, tensor<?xi32> -> tensor<?x4xbf16>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %r: tensor<5xi32>) {
  // expected-error @+1 {{'mica.select_rows' op operands and results differ in their number of rows: 'tensor<5xi32>' and 'tensor<?x4xf32>'}}
  %0 = mica.select_rows %x, %r : tensor<?x4xf32>, tensor<5xi32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %r: tensor<?xi32>) {
  // expected-error @+1 {{'mica.select_rows' op a row of the result has size 5, expected 4 (a row of x)}}
  %0 = mica.select_rows %x, %r : tensor<?x4xf32>, tensor<?xi32> -> tensor<?x5xf32>
  return
}

// -----

func.func @f(%x: tensor<?xf32>) {
  // expected-error @+1 {{'mica.silu' op operand #0 must be rows [T, C] or heads [T, H, D] of f32 or bf16 or !mica.int_rows values}}
  %0 = mica.silu %x : tensor<?xf32>
  return
}

// -----

func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @+1 {{'mica.gelu' op operand #0 must be rows [T, C] or heads [T, H, D] of f32 or bf16 or !mica.int_rows values}}
  %0 = mica.gelu %x : tensor<?x?xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xi32>) {
  // expected-error @+1 {{'mica.add' op operand #0 must be rows [T, C] or heads [T, H, D] of f32 or bf16 or !mica.int_rows values}}
  %0 = mica.add %x, %x : tensor<?x4xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'mica.cast' op requires the same shape for all operands and results}}
  %0 = mica.cast %x : tensor<?x4xf32> to tensor<?x5xbf16>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'mica.scale' op scales by a finite number other than zero, got 0.000000e+00}}
  %0 = mica.scale %x by(0.0) : tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'mica.softcap' op the cap must be a positive number, got -3.000000e+01}}
  %0 = mica.softcap %x at(-30.0) : tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<?x2xf32>) {
  // expected-error @+1 {{'mica.sigmoid_gate' op a row of the gate has size 2, expected 1 or 4 (a number per row or per element)}}
  %0 = mica.sigmoid_gate %x, %g : tensor<?x4xf32>, tensor<?x2xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<5x1xf32>) {
  // expected-error @+1 {{'mica.sigmoid_gate' op operands and results differ in their number of rows: 'tensor<?x4xf32>' and 'tensor<5x1xf32>'}}
  %0 = mica.sigmoid_gate %x, %g : tensor<?x4xf32>, tensor<5x1xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'mica.scale_parts' op has 1 factors for 2 parts}}
  %0 = mica.scale_parts %x by([0.25]) widths([3, 1]) : tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'mica.scale_parts' op scales by finite numbers other than zero, got 0.000000e+00}}
  %0 = mica.scale_parts %x by([0.25, 0.0]) widths([3, 1]) : tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'mica.scale_parts' op has a part of 0 columns}}
  %0 = mica.scale_parts %x by([0.25, 0.5]) widths([4, 0]) : tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'mica.scale_parts' op a row of x has size 4, expected 5 (columns of all parts)}}
  %0 = mica.scale_parts %x by([0.25, 0.5]) widths([4, 1]) : tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %layer: index) {
  // expected-error @+1 {{'mica.select_head' op a row of the result has size 3, expected 4 (a head of x)}}
  %0 = mica.select_head %x[%layer] : tensor<?x2x4xf32> -> tensor<?x3xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x4xf32>, %layer: index) {
  // expected-error @+1 {{'mica.select_head' op operands and results differ in their number of rows: 'tensor<?x2x4xf32>' and 'tensor<5x4xf32>'}}
  %0 = mica.select_head %x[%layer] : tensor<?x2x4xf32> -> tensor<5x4xf32>
  return
}
