// RUN: mica-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<?x4xf32>, %g: tensor<4x4xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op chooses k = 5 of 4 experts}}
  %0, %1 = mica.moe_gate %x, %g softmax k(5) : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<4x4xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op chooses k = 0 of 4 experts}}
  %0, %1 = mica.moe_gate %x, %g softmax k(0) : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<4x4xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op has an eps that is negative or not finite}}
  %0, %1 = mica.moe_gate %x, %g softmax k(2) normalize eps(-1.0e-6) : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<4x4xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op has an eps, which only 'normalize' uses}}
  %0, %1 = mica.moe_gate %x, %g softmax k(2) eps(1.0e-6) : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x5xf32>, %g: tensor<4x4xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op a row of x has size 5, expected 4 (columns of the gate [E, C])}}
  %0, %1 = mica.moe_gate %x, %g softmax k(2) : tensor<?x5xf32>, tensor<4x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<4x4xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op a row of the weights has size 3, expected 2 (k)}}
  %0, %1 = mica.moe_gate %x, %g softmax k(2) : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x3xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<4x4xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op a row of the experts has size 3, expected 2 (k)}}
  %0, %1 = mica.moe_gate %x, %g softmax k(2) : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x2xf32>, tensor<?x3xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<4x4xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op operands and results differ in their number of rows: 'tensor<?x4xf32>' and 'tensor<5x2xf32>'}}
  %0, %1 = mica.moe_gate %x, %g softmax k(2) : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<5x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<4x4xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op operands and results differ in their number of rows: 'tensor<?x4xf32>' and 'tensor<5x2xi32>'}}
  %0, %1 = mica.moe_gate %x, %g softmax k(2) : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x2xf32>, tensor<5x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<4x4xf32>) {
  // expected-error @+1 {{'argmax' is not a valid scoring}}
  %0, %1 = mica.moe_gate %x, %g argmax k(1) : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x1xf32>, tensor<?x1xi32>
  return
}

// -----

func.func @f(
    %x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>,
    %d: tensor<4x4x8xf32>, %u: tensor<4x8x4xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op gate has size 8, expected 6 (inner)}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) silu inner(6)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>,
    %d: tensor<4x4x8xf32>, %u: tensor<4x8x4xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op gate has size 8, expected 128 (gate and up in padded blocks)}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d silu inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x5xf32>,
    %d: tensor<4x4x8xf32>, %u: tensor<4x8x5xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op a row of gate has size 5, expected 4 (a row of x)}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x5xf32>) silu inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x5xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>,
    %d: tensor<4x5x8xf32>, %u: tensor<4x8x4xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op down has size 5, expected 4 (a row of the result)}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) silu inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x5x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>,
    %d: tensor<4x4x7xf32>, %u: tensor<4x8x4xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op a row of down has size 7, expected 8 (inner)}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) silu inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x7xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>,
    %d: tensor<3x4x8xf32>, %u: tensor<4x8x4xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op down has size 3, expected 4 (experts of gate)}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) silu inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<3x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x3xi32>, %g: tensor<4x8x4xf32>,
    %d: tensor<4x4x8xf32>, %u: tensor<4x8x4xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op a row of the experts has size 3, expected 2 (a row of the weights)}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) silu inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x3xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>,
    %d: tensor<4x4x8xf32>, %u: tensor<4x9x4xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op up has type 'tensor<4x9x4xf32>', expected the shape of gate, 'tensor<4x8x4xf32>'}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x9x4xf32>) silu inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>,
    %d: tensor<4x4x8xf32>, %u: tensor<4x8x4xf32>, %r: tensor<?x5xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op residual has type 'tensor<?x5xf32>', expected that of the result}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) residual(%r : tensor<?x5xf32>) silu inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x4xf32>, %w: tensor<5x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>,
    %d: tensor<4x4x8xf32>, %u: tensor<4x8x4xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op operands and results differ in their number of rows: 'tensor<?x4xf32>' and 'tensor<5x2xf32>'}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) silu inner(8)
      : tensor<?x4xf32>, tensor<5x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<5x2xi32>, %g: tensor<4x8x4xf32>,
    %d: tensor<4x4x8xf32>, %u: tensor<4x8x4xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op operands and results differ in their number of rows: 'tensor<?x4xf32>' and 'tensor<5x2xi32>'}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) silu inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<5x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(
    %x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>,
    %d: tensor<4x4x8xf32>, %u: tensor<4x8x4xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op operands and results differ in their number of rows: 'tensor<?x4xf32>' and 'tensor<5x4xf32>'}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) silu inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<5x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<6x4xf32>, %b: tensor<5xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op bias has size 5, expected 6 (a number per expert)}}
  %0, %1 = mica.moe_gate %x, %g bias(%b : tensor<5xf32>) softmax k(2)  : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<6x4xf32>, %b: tensor<5xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op expert_scales has size 5, expected 6 (a number per expert)}}
  %0, %1 = mica.moe_gate %x, %g expert_scales(%b : tensor<5xf32>) softmax k(2)  : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<6x4xf32>, %b: tensor<5xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op e_score_correction_bias has size 5, expected 6 (a number per expert)}}
  %0, %1 = mica.moe_gate %x, %g e_score_correction_bias(%b : tensor<5xf32>) softmax k(2)  : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<6x4xf32>, %b: tensor<6xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op has 6 experts, which are not 4 groups of one size}}
  %0, %1 = mica.moe_gate %x, %g  softmax k(2) groups(4 keep 2 by best) : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<6x4xf32>, %b: tensor<6xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op keeps 4 of 3 groups}}
  %0, %1 = mica.moe_gate %x, %g  softmax k(2) groups(3 keep 4 by best) : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<6x4xf32>, %b: tensor<6xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op chooses k = 3 of the 2 experts in the groups that are kept}}
  %0, %1 = mica.moe_gate %x, %g  softmax k(3) groups(3 keep 1 by best) : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x3xf32>, tensor<?x3xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<6x4xf32>, %b: tensor<6xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op scores groups by their two best experts, but they have one}}
  %0, %1 = mica.moe_gate %x, %g  softmax k(2) groups(6 keep 2 by best_two) : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %g: tensor<6x4xf32>) {
  // expected-error @+1 {{'mica.moe_gate' op requires all or none of 'groups', 'topk_group' and 'group_scoring'}}
  %0, %1 = mica.moe_gate %x, %g softmax k(2) {topk_group = 2 : i64} : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %u: tensor<4x8x4xf32>,
             %d: tensor<4x4x8xf32>,
             %a: tensor<4x8xf32>, %b: tensor<3x8xf32>, %c: tensor<4x4xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op a stack of biases has size 3, expected 4 (experts of down)}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) biases(%a, %b, %c : tensor<4x8xf32>, tensor<3x8xf32>, tensor<4x4xf32>) silu inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %u: tensor<4x8x4xf32>,
             %d: tensor<4x4x8xf32>,
             %a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op a row of biases has size 8, expected 4 (a row of their product)}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) biases(%a, %b, %c : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) silu inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %u: tensor<4x8x4xf32>,
             %d: tensor<4x4x8xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op is clamped with gelu, but only silu is}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) gelu clamped(alpha 1.0 limit 2.0) inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %u: tensor<4x8x4xf32>,
             %d: tensor<4x4x8xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op has a limit that is not a positive number}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) silu clamped(alpha 1.0 limit 0.0) inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %u: tensor<4x8x4xf32>,
             %d: tensor<4x4x8xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op has an alpha that is not a finite number}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) silu clamped(alpha 0x7FF0000000000000 limit 1.0) inner(8)
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %u: tensor<4x8x4xf32>,
             %d: tensor<4x4x8xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op has alpha and limit, or none of these}}
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%u : tensor<4x8x4xf32>) silu inner(8) {limit = 1.0 : f64}
      : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<?x2xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %u: tensor<4x8x4xf32>,
             %d: tensor<4x4x8xf32>, %a: tensor<4x8xf32>) {
  // expected-error @+1 {{'mica.moe_experts' op has biases of gate, up and down, or none of these}}
  %0 = "mica.moe_experts"(%x, %w, %e, %g, %d, %u, %a) <{activation = #mica<activation silu>, inner = 8 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 0, 0>}>
      : (tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x4x8xf32>, tensor<4x8x4xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %h: tensor<4x8x5xf32>, %a: tensor<4x8xf32>, %b: tensor<3x8xf32>, %c: tensor<4x7xf32>) {
  // expected-error @+1 {{'mica.moe_gate_up' op gate has size 8, expected 7 (a row of the result)}}
  %0 = mica.moe_gate_up %x, %e, %g up(%g : tensor<4x8x4xf32>) silu : tensor<?x4xf32>, tensor<?x2xi32>, tensor<4x8x4xf32> -> tensor<?x2x7xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %h: tensor<4x8x5xf32>, %a: tensor<4x8xf32>, %b: tensor<3x8xf32>, %c: tensor<4x7xf32>) {
  // expected-error @+1 {{'mica.moe_gate_up' op a row of gate has size 5, expected 4 (a row of x)}}
  %0 = mica.moe_gate_up %x, %e, %h up(%h : tensor<4x8x5xf32>) silu : tensor<?x4xf32>, tensor<?x2xi32>, tensor<4x8x5xf32> -> tensor<?x2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>) {
  // expected-error @+1 {{'mica.moe_gate_up' op gate has size 8, expected 128 (gate and up in padded blocks)}}
  %0 = mica.moe_gate_up %x, %e, %g silu : tensor<?x4xf32>, tensor<?x2xi32>, tensor<4x8x4xf32> -> tensor<?x2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %h: tensor<4x8x5xf32>) {
  // expected-error @+1 {{'mica.moe_gate_up' op up has type 'tensor<4x8x5xf32>', expected the shape of gate, 'tensor<4x8x4xf32>'}}
  %0 = mica.moe_gate_up %x, %e, %g up(%h : tensor<4x8x5xf32>) silu : tensor<?x4xf32>, tensor<?x2xi32>, tensor<4x8x4xf32> -> tensor<?x2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %h: tensor<4x8x5xf32>, %a: tensor<4x8xf32>, %b: tensor<3x8xf32>, %c: tensor<4x7xf32>) {
  // expected-error @+1 {{'mica.moe_gate_up' op the result has size 3, expected 2 (experts of a row)}}
  %0 = mica.moe_gate_up %x, %e, %g up(%g : tensor<4x8x4xf32>) silu : tensor<?x4xf32>, tensor<?x2xi32>, tensor<4x8x4xf32> -> tensor<?x3x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %h: tensor<4x8x5xf32>, %a: tensor<4x8xf32>, %b: tensor<3x8xf32>, %c: tensor<4x7xf32>) {
  // expected-error @+1 {{'mica.moe_gate_up' op a stack of biases has size 3, expected 4 (experts of gate)}}
  %0 = mica.moe_gate_up %x, %e, %g up(%g : tensor<4x8x4xf32>) biases(%a, %b : tensor<4x8xf32>, tensor<3x8xf32>) silu : tensor<?x4xf32>, tensor<?x2xi32>, tensor<4x8x4xf32> -> tensor<?x2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %h: tensor<4x8x5xf32>, %a: tensor<4x8xf32>, %b: tensor<3x8xf32>, %c: tensor<4x7xf32>) {
  // expected-error @+1 {{'mica.moe_gate_up' op a row of biases has size 7, expected 8 (a row of their product)}}
  %0 = mica.moe_gate_up %x, %e, %g up(%g : tensor<4x8x4xf32>) biases(%a, %c : tensor<4x8xf32>, tensor<4x7xf32>) silu : tensor<?x4xf32>, tensor<?x2xi32>, tensor<4x8x4xf32> -> tensor<?x2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %h: tensor<4x8x5xf32>, %a: tensor<4x8xf32>, %b: tensor<3x8xf32>, %c: tensor<4x7xf32>) {
  // expected-error @+1 {{'mica.moe_gate_up' op is clamped with gelu, but only silu is}}
  %0 = mica.moe_gate_up %x, %e, %g up(%g : tensor<4x8x4xf32>) gelu clamped(alpha 1.7 limit 7.0) : tensor<?x4xf32>, tensor<?x2xi32>, tensor<4x8x4xf32> -> tensor<?x2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %h: tensor<4x8x5xf32>, %a: tensor<4x8xf32>, %b: tensor<3x8xf32>, %c: tensor<4x7xf32>) {
  // expected-error @+1 {{'mica.moe_gate_up' op has a limit that is not a positive number}}
  %0 = mica.moe_gate_up %x, %e, %g up(%g : tensor<4x8x4xf32>) silu clamped(alpha 1.7 limit 0.0) : tensor<?x4xf32>, tensor<?x2xi32>, tensor<4x8x4xf32> -> tensor<?x2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %e: tensor<5x2xi32>, %g: tensor<4x8x4xf32>, %h: tensor<4x8x5xf32>, %a: tensor<4x8xf32>, %b: tensor<3x8xf32>, %c: tensor<4x7xf32>) {
  // expected-error @+1 {{'mica.moe_gate_up' op operands and results differ in their number of rows: 'tensor<?x4xf32>' and 'tensor<5x2xi32>'}}
  %0 = mica.moe_gate_up %x, %e, %g up(%g : tensor<4x8x4xf32>) silu : tensor<?x4xf32>, tensor<5x2xi32>, tensor<4x8x4xf32> -> tensor<?x2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %e: tensor<?x2xi32>, %g: tensor<4x8x4xf32>, %h: tensor<4x8x5xf32>, %a: tensor<4x8xf32>, %b: tensor<3x8xf32>, %c: tensor<4x7xf32>) {
  // expected-error @+1 {{'mica.moe_gate_up' op has biases of gate and up, or none of these}}
  %0 = "mica.moe_gate_up"(%x, %e, %g, %g, %a) <{activation = #mica<activation silu>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>}>
      : (tensor<?x4xf32>, tensor<?x2xi32>, tensor<4x8x4xf32>, tensor<4x8x4xf32>, tensor<4x8xf32>) -> tensor<?x2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x8xf32>, %w: tensor<?x2xf32>, %v: tensor<?x3xf32>, %e: tensor<?x2xi32>, %f: tensor<?x3xi32>, %d: tensor<4x4x8xf32>, %h: tensor<4x4x7xf32>, %b: tensor<3x4xf32>, %c: tensor<4x5xf32>, %r: tensor<?x5xf32>, %s: tensor<5x2xf32>) {
  // expected-error @+1 {{'mica.moe_down' op down has size 4, expected 5 (a row of the result)}}
  %0 = mica.moe_down %x, %w, %e, %d
      : tensor<?x2x8xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x4x8xf32> -> tensor<?x5xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x8xf32>, %w: tensor<?x2xf32>, %v: tensor<?x3xf32>, %e: tensor<?x2xi32>, %f: tensor<?x3xi32>, %d: tensor<4x4x8xf32>, %h: tensor<4x4x7xf32>, %b: tensor<3x4xf32>, %c: tensor<4x5xf32>, %r: tensor<?x5xf32>, %s: tensor<5x2xf32>) {
  // expected-error @+1 {{'mica.moe_down' op a row of down has size 7, expected 8 (the last axis of x)}}
  %0 = mica.moe_down %x, %w, %e, %h
      : tensor<?x2x8xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x4x7xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x8xf32>, %w: tensor<?x2xf32>, %v: tensor<?x3xf32>, %e: tensor<?x2xi32>, %f: tensor<?x3xi32>, %d: tensor<4x4x8xf32>, %h: tensor<4x4x7xf32>, %b: tensor<3x4xf32>, %c: tensor<4x5xf32>, %r: tensor<?x5xf32>, %s: tensor<5x2xf32>) {
  // expected-error @+1 {{'mica.moe_down' op x has size 2, expected 3 (experts of a row)}}
  %0 = mica.moe_down %x, %v, %f, %d
      : tensor<?x2x8xf32>, tensor<?x3xf32>, tensor<?x3xi32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x8xf32>, %w: tensor<?x2xf32>, %v: tensor<?x3xf32>, %e: tensor<?x2xi32>, %f: tensor<?x3xi32>, %d: tensor<4x4x8xf32>, %h: tensor<4x4x7xf32>, %b: tensor<3x4xf32>, %c: tensor<4x5xf32>, %r: tensor<?x5xf32>, %s: tensor<5x2xf32>) {
  // expected-error @+1 {{'mica.moe_down' op a row of the experts has size 2, expected 3 (a row of the weights)}}
  %0 = mica.moe_down %x, %v, %e, %d
      : tensor<?x2x8xf32>, tensor<?x3xf32>, tensor<?x2xi32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x8xf32>, %w: tensor<?x2xf32>, %v: tensor<?x3xf32>, %e: tensor<?x2xi32>, %f: tensor<?x3xi32>, %d: tensor<4x4x8xf32>, %h: tensor<4x4x7xf32>, %b: tensor<3x4xf32>, %c: tensor<4x5xf32>, %r: tensor<?x5xf32>, %s: tensor<5x2xf32>) {
  // expected-error @+1 {{'mica.moe_down' op a stack of biases has size 3, expected 4 (experts of down)}}
  %0 = mica.moe_down %x, %w, %e, %d bias(%b : tensor<3x4xf32>)
      : tensor<?x2x8xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x8xf32>, %w: tensor<?x2xf32>, %v: tensor<?x3xf32>, %e: tensor<?x2xi32>, %f: tensor<?x3xi32>, %d: tensor<4x4x8xf32>, %h: tensor<4x4x7xf32>, %b: tensor<3x4xf32>, %c: tensor<4x5xf32>, %r: tensor<?x5xf32>, %s: tensor<5x2xf32>) {
  // expected-error @+1 {{'mica.moe_down' op a row of biases has size 5, expected 4 (a row of their product)}}
  %0 = mica.moe_down %x, %w, %e, %d bias(%c : tensor<4x5xf32>)
      : tensor<?x2x8xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x8xf32>, %w: tensor<?x2xf32>, %v: tensor<?x3xf32>, %e: tensor<?x2xi32>, %f: tensor<?x3xi32>, %d: tensor<4x4x8xf32>, %h: tensor<4x4x7xf32>, %b: tensor<3x4xf32>, %c: tensor<4x5xf32>, %r: tensor<?x5xf32>, %s: tensor<5x2xf32>) {
  // expected-error @+1 {{'mica.moe_down' op residual has type 'tensor<?x5xf32>', expected that of the result}}
  %0 = mica.moe_down %x, %w, %e, %d residual(%r : tensor<?x5xf32>)
      : tensor<?x2x8xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x8xf32>, %w: tensor<?x2xf32>, %v: tensor<?x3xf32>, %e: tensor<?x2xi32>, %f: tensor<?x3xi32>, %d: tensor<4x4x8xf32>, %h: tensor<4x4x7xf32>, %b: tensor<3x4xf32>, %c: tensor<4x5xf32>, %r: tensor<?x5xf32>, %s: tensor<5x2xf32>) {
  // expected-error @+1 {{'mica.moe_down' op operands and results differ in their number of rows: 'tensor<?x2x8xf32>' and 'tensor<5x2xf32>'}}
  %0 = mica.moe_down %x, %s, %e, %d
      : tensor<?x2x8xf32>, tensor<5x2xf32>, tensor<?x2xi32>, tensor<4x4x8xf32> -> tensor<?x4xf32>
  return
}
