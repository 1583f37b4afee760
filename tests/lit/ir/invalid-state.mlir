// RUN: mica-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{a rolling state needs at least one layer and one channel}}
func.func private @f(!mica.rolling_state<0 x 4 x f32 window(3)>)

// -----

// expected-error @+1 {{a rolling state holds f32, got 'bf16'}}
func.func private @f(!mica.rolling_state<2 x 4 x bf16 window(3)>)

// -----

// expected-error @+1 {{the window of a rolling state is 2 to 32 positions, got 1}}
func.func private @f(!mica.rolling_state<2 x 4 x f32 window(1)>)

// -----

// expected-error @+1 {{the window of a rolling state is 2 to 32 positions, got 33}}
func.func private @f(!mica.rolling_state<2 x 4 x f32 window(33)>)

// -----

func.func @f(%x: tensor<?x5xf32>, %w: tensor<5x3xf32>, %c: !mica.rolling_state<2 x 4 x f32 window(3)>, %l: index, %s: tensor<?xi32>) {
  // expected-error @+1 {{'mica.causal_conv1d' op x has size 5, expected 4 (channels of the state)}}
  %y, %n = mica.causal_conv1d %x, %w, %c[%l] at(%s, %s : tensor<?xi32>, tensor<?xi32>) : tensor<?x5xf32>, tensor<5x3xf32>, !mica.rolling_state<2 x 4 x f32 window(3)>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<5x3xf32>, %c: !mica.rolling_state<2 x 4 x f32 window(3)>, %l: index, %s: tensor<?xi32>) {
  // expected-error @+1 {{'mica.causal_conv1d' op weight has size 5, expected 4 (a filter per channel)}}
  %y, %n = mica.causal_conv1d %x, %w, %c[%l] at(%s, %s : tensor<?xi32>, tensor<?xi32>) : tensor<?x4xf32>, tensor<5x3xf32>, !mica.rolling_state<2 x 4 x f32 window(3)>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<4x2xf32>, %c: !mica.rolling_state<2 x 4 x f32 window(3)>, %l: index, %s: tensor<?xi32>) {
  // expected-error @+1 {{'mica.causal_conv1d' op a filter has size 2, expected 3 (window of the state)}}
  %y, %n = mica.causal_conv1d %x, %w, %c[%l] at(%s, %s : tensor<?xi32>, tensor<?xi32>) : tensor<?x4xf32>, tensor<4x2xf32>, !mica.rolling_state<2 x 4 x f32 window(3)>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<4x3xf32>, %b: tensor<3xf32>, %c: !mica.rolling_state<2 x 4 x f32 window(3)>, %l: index, %s: tensor<?xi32>) {
  // expected-error @+1 {{'mica.causal_conv1d' op bias has size 3, expected 4 (a number per channel)}}
  %y, %n = mica.causal_conv1d %x, %w, %c[%l] at(%s, %s : tensor<?xi32>, tensor<?xi32>) bias(%b : tensor<3xf32>) : tensor<?x4xf32>, tensor<4x3xf32>, !mica.rolling_state<2 x 4 x f32 window(3)>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<4x3xf32>, %c: !mica.rolling_state<2 x 4 x f32 window(3)>, %l: index, %s: tensor<5xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{'mica.causal_conv1d' op operands and results differ in their number of rows: 'tensor<?x4xf32>' and 'tensor<5xi32>'}}
  %y, %n = mica.causal_conv1d %x, %w, %c[%l] at(%s, %p : tensor<5xi32>, tensor<?xi32>) : tensor<?x4xf32>, tensor<4x3xf32>, !mica.rolling_state<2 x 4 x f32 window(3)>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %w: tensor<4x3xf32>, %c: !mica.rolling_state<2 x 4 x f32 window(3)>, %l: index, %s: tensor<?xi32>, %p: tensor<5xi32>) {
  // expected-error @+1 {{'mica.causal_conv1d' op operands and results differ in their number of rows: 'tensor<?x4xf32>' and 'tensor<5xi32>'}}
  %y, %n = mica.causal_conv1d %x, %w, %c[%l] at(%s, %p : tensor<?xi32>, tensor<5xi32>) : tensor<?x4xf32>, tensor<4x3xf32>, !mica.rolling_state<2 x 4 x f32 window(3)>
  return
}

// -----

func.func @f(%q: tensor<?x2x3xf32>, %v: tensor<?x2x5xf32>, %d: tensor<?x2xf32>, %c: !mica.recurrent_state<2 x 4 x 3 x 5 x f32>, %l: index, %s: tensor<?xi32>) {
  // expected-error @+1 {{'mica.linear_attention' op v has size 2, expected 4 (heads of the state)}}
  %y, %x = mica.linear_attention %q, %q, %v decay(%d : tensor<?x2xf32>), %c[%l] at(%s, %s : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x3xf32>, tensor<?x2x5xf32>, !mica.recurrent_state<2 x 4 x 3 x 5 x f32>
  return
}

// -----

func.func @f(%q: tensor<?x2x3xf32>, %v: tensor<?x4x5xf32>, %d: tensor<?x2xf32>, %c: !mica.recurrent_state<2 x 4 x 3 x 5 x f32>, %l: index, %s: tensor<?xi32>) {
  // expected-error @+1 {{'mica.linear_attention' op decay has size 2, expected 4 (a number per head of v)}}
  %y, %x = mica.linear_attention %q, %q, %v decay(%d : tensor<?x2xf32>), %c[%l] at(%s, %s : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x3xf32>, tensor<?x4x5xf32>, !mica.recurrent_state<2 x 4 x 3 x 5 x f32>
  return
}

// -----

func.func @f(%q: tensor<?x2x2xf32>, %v: tensor<?x4x5xf32>, %d: tensor<?x4xf32>, %c: !mica.recurrent_state<2 x 4 x 3 x 5 x f32>, %l: index, %s: tensor<?xi32>) {
  // expected-error @+1 {{'mica.linear_attention' op a head of q and k has size 2, expected 3 (keys of the state)}}
  %y, %x = mica.linear_attention %q, %q, %v decay(%d : tensor<?x4xf32>), %c[%l] at(%s, %s : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x2xf32>, tensor<?x4x5xf32>, !mica.recurrent_state<2 x 4 x 3 x 5 x f32>
  return
}

// -----

func.func @f(%q: tensor<?x2x3xf32>, %v: tensor<?x4x4xf32>, %d: tensor<?x4xf32>, %c: !mica.recurrent_state<2 x 4 x 3 x 5 x f32>, %l: index, %s: tensor<?xi32>) {
  // expected-error @+1 {{'mica.linear_attention' op a head of v has size 4, expected 5 (values of the state)}}
  %y, %x = mica.linear_attention %q, %q, %v decay(%d : tensor<?x4xf32>), %c[%l] at(%s, %s : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x3xf32>, tensor<?x4x4xf32>, !mica.recurrent_state<2 x 4 x 3 x 5 x f32>
  return
}

// -----

func.func @f(%q: tensor<?x3x3xf32>, %v: tensor<?x4x5xf32>, %d: tensor<?x4xf32>, %c: !mica.recurrent_state<2 x 4 x 3 x 5 x f32>, %l: index, %s: tensor<?xi32>) {
  // expected-error @+1 {{'mica.linear_attention' op 4 heads of v are not a multiple of the 3 heads of q and k}}
  %y, %x = mica.linear_attention %q, %q, %v decay(%d : tensor<?x4xf32>), %c[%l] at(%s, %s : tensor<?xi32>, tensor<?xi32>) : tensor<?x3x3xf32>, tensor<?x4x5xf32>, !mica.recurrent_state<2 x 4 x 3 x 5 x f32>
  return
}

// -----

func.func @f(%q: tensor<?x2x3xf32>, %v: tensor<?x4x5xf32>, %d: tensor<7x4xf32>, %c: !mica.recurrent_state<2 x 4 x 3 x 5 x f32>, %l: index, %s: tensor<?xi32>) {
  // expected-error @+1 {{'mica.linear_attention' op operands and results differ in their number of rows: 'tensor<?x2x3xf32>' and 'tensor<7x4xf32>'}}
  %y, %x = mica.linear_attention %q, %q, %v decay(%d : tensor<7x4xf32>), %c[%l] at(%s, %s : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x3xf32>, tensor<?x4x5xf32>, !mica.recurrent_state<2 x 4 x 3 x 5 x f32>
  return
}

// -----

// expected-error @+1 {{a recurrent state needs at least one layer, head, key and value}}
func.func private @f(!mica.recurrent_state<0 x 4 x 3 x 5 x f32>)

// -----

// expected-error @+1 {{a recurrent state holds f32, got 'bf16'}}
func.func private @f(!mica.recurrent_state<2 x 4 x 3 x 5 x bf16>)

// -----

// expected-error @+1 {{a matrix of a recurrent state is at most 4096 x 4096, got 3 x 4097}}
func.func private @f(!mica.recurrent_state<2 x 4 x 3 x 4097 x f32>)

// -----

func.func @f(%q: tensor<?x2x3xf32>, %v: tensor<?x4x5xf32>, %d: tensor<?x4xf32>, %b: tensor<?x2xf32>, %c: !mica.recurrent_state<2 x 4 x 3 x 5 x f32>, %l: index, %s: tensor<?xi32>) {
  // expected-error @+1 {{'mica.linear_attention' op beta has size 2, expected 4 (a number per head of v)}}
  %y, %x = mica.linear_attention %q, %q, %v decay(%d : tensor<?x4xf32>) beta(%b : tensor<?x2xf32>), %c[%l] at(%s, %s : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x3xf32>, tensor<?x4x5xf32>, !mica.recurrent_state<2 x 4 x 3 x 5 x f32>
  return
}

// -----

func.func @f(%q: tensor<?x2x3xf32>, %v: tensor<?x4x5xf32>, %d: tensor<?x4xf32>, %b: tensor<7x4xf32>, %c: !mica.recurrent_state<2 x 4 x 3 x 5 x f32>, %l: index, %s: tensor<?xi32>) {
  // expected-error @+1 {{'mica.linear_attention' op operands and results differ in their number of rows: 'tensor<?x2x3xf32>' and 'tensor<7x4xf32>'}}
  %y, %x = mica.linear_attention %q, %q, %v decay(%d : tensor<?x4xf32>) beta(%b : tensor<7x4xf32>), %c[%l] at(%s, %s : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x3xf32>, tensor<?x4x5xf32>, !mica.recurrent_state<2 x 4 x 3 x 5 x f32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %b: tensor<5xf32>) {
  // expected-error @+1 {{'mica.softplus' op bias has size 5, expected 4 (a number per column)}}
  %y = mica.softplus %x bias(%b) : tensor<?x4xf32>, tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %a: tensor<5xf32>) {
  // expected-error @+1 {{'mica.decay' op a_log has size 5, expected 4 (a number per head)}}
  %y = mica.decay %x, %a : tensor<?x4xf32>, tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4x3xf32>, %f: tensor<3xf32>) {
  // expected-error @+1 {{'mica.scale_heads' op factors has size 3, expected 4 (a number per head)}}
  %y = mica.scale_heads %x by(%f) : tensor<?x4x3xf32>, tensor<3xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4x3xf32>, %f: tensor<5x4xf32>) {
  // expected-error @+1 {{'mica.scale_heads' op operands and results differ in their number of rows: 'tensor<?x4x3xf32>' and 'tensor<5x4xf32>'}}
  %y = mica.scale_heads %x by(%f) : tensor<?x4x3xf32>, tensor<5x4xf32>
  return
}
