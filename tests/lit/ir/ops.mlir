// RUN: mica-opt %s | mica-opt | FileCheck %s
// RUN: mica-opt %s --mlir-print-op-generic | mica-opt | FileCheck %s

// Every op with every optional part round-trips, also in the generic form.

!cache = !mica.kv_cache<3 x 2 x 4 x f32>
!packed_keys = !mica.kv_cache<3 x 2 x 4 x bf16, <keys, block = 64, depth = 2>>
!packed_values = !mica.kv_cache<3 x 2 x 4 x bf16, <values, block = 64, depth = 2>>

// CHECK: mica.weight @plain : tensor<4x4xf16>
mica.weight @plain : tensor<4x4xf16>
// CHECK: mica.weight @renamed from ["a.weight"] : tensor<4xf32>
mica.weight @renamed from ["a.weight"] : tensor<4xf32>
// CHECK: mica.weight @concat from ["q", "k", "v"] concat : tensor<12x4xbf16>
mica.weight @concat from ["q", "k", "v"] concat : tensor<12x4xbf16>
// CHECK: mica.weight @stack from ["0", "1"] stack : tensor<2x4x4xf32>
mica.weight @stack from ["0", "1"] stack : tensor<2x4x4xf32>
// CHECK: mica.weight @interleave from ["gate", "up"] interleave : tensor<128x4xf32>
mica.weight @interleave from ["gate", "up"] interleave : tensor<128x4xf32>
// CHECK: mica.weight @stacked_pairs from ["0.gate", "0.up", "1.gate", "1.up"] stack parts(2) : tensor<2x128x4xf32>
mica.weight @stacked_pairs from ["0.gate", "0.up", "1.gate", "1.up"] stack parts(2) : tensor<2x128x4xf32>
// CHECK: mica.weight @placed at 4096 bytes 8192 : tensor<4x4xbf16, #mica.packed<columns = 64, depth = 2, k_block = 32>>
mica.weight @placed at 4096 bytes 8192 : tensor<4x4xbf16, #mica.packed<columns = 64, depth = 2, k_block = 32>>

// CHECK-LABEL: func.func @weights
func.func @weights(%layer: index) {
  // CHECK: mica.get_weight @plain : tensor<4x4xf16>
  %0 = mica.get_weight @plain : tensor<4x4xf16>
  // CHECK: mica.select_weight [@plain, @plain][%{{.*}}] : tensor<4x4xf16>
  %1 = mica.select_weight [@plain, @plain][%layer] : tensor<4x4xf16>
  // CHECK: mica.index_table [0, -3, 4][%{{.*}}]
  %2 = mica.index_table [0, -3, 4][%layer]
  return
}

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<?x4xf32>, %h: tensor<?x2x4xbf16>, %rows: tensor<?xi32>) {
  // CHECK: mica.add %{{.*}}, %{{.*}} : tensor<?x4xf32>
  %0 = mica.add %x, %x : tensor<?x4xf32>
  // CHECK: mica.mul %{{.*}}, %{{.*}} : tensor<?x2x4xbf16>
  %1 = mica.mul %h, %h : tensor<?x2x4xbf16>
  // CHECK: mica.silu %{{.*}} : tensor<?x4xf32>
  %2 = mica.silu %x : tensor<?x4xf32>
  // CHECK: mica.gelu %{{.*}} : tensor<?x4xf32>
  %3 = mica.gelu %x : tensor<?x4xf32>
  // CHECK: mica.gelu_tanh %{{.*}} : tensor<?x4xf32>
  %4 = mica.gelu_tanh %x : tensor<?x4xf32>
  // CHECK: mica.relu %{{.*}} : tensor<?x2x4xbf16>
  %5 = mica.relu %h : tensor<?x2x4xbf16>
  // CHECK: mica.cast %{{.*}} : tensor<?x4xf32> to tensor<?x4xbf16>
  %6 = mica.cast %x : tensor<?x4xf32> to tensor<?x4xbf16>
  // CHECK: mica.split_heads %{{.*}} : tensor<?x4xf32> to tensor<?x2x2xf32>
  %7 = mica.split_heads %x : tensor<?x4xf32> to tensor<?x2x2xf32>
  // CHECK: mica.merge_heads %{{.*}} : tensor<?x2x4xbf16> to tensor<?x8xbf16>
  %8 = mica.merge_heads %h : tensor<?x2x4xbf16> to tensor<?x8xbf16>
  // CHECK: mica.select_rows %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
  %9 = mica.select_rows %x, %rows : tensor<?x4xf32>, tensor<?xi32> -> tensor<?x4xf32>
  // CHECK: mica.relu2 %{{.*}} : tensor<?x2x4xbf16>
  %10 = mica.relu2 %h : tensor<?x2x4xbf16>
  // CHECK: mica.quick_gelu %{{.*}} : tensor<?x4xf32>
  %11 = mica.quick_gelu %x : tensor<?x4xf32>
  // CHECK: mica.sinusoid %{{.*}} offset(2) padding_idx(3) : tensor<?xi32> -> tensor<?x4xf32>
  %12 = mica.sinusoid %rows offset(2) padding_idx(3) : tensor<?xi32> -> tensor<?x4xf32>
  return
}

// CHECK-LABEL: func.func @parts
func.func @parts(%x: tensor<?x4xf32>) {
  // CHECK: mica.scale_parts %{{.*}} by([2.500000e-01, 1.500000e+00]) widths([3, 1]) : tensor<?x4xf32>
  %0 = mica.scale_parts %x by([0.25, 1.5]) widths([3, 1]) : tensor<?x4xf32>
  %layer = arith.constant 1 : index
  %h = mica.split_heads %x : tensor<?x4xf32> to tensor<?x2x2xf32>
  // CHECK: mica.select_head %{{.*}}[%{{.*}}] : tensor<?x2x2xf32> -> tensor<?x2xf32>
  %1 = mica.select_head %h[%layer] : tensor<?x2x2xf32> -> tensor<?x2xf32>
  return
}

// CHECK-LABEL: func.func @sigmoids
func.func @sigmoids(%x: tensor<?x4xf32>, %h: tensor<?x2x4xbf16>, %gate: tensor<?x1xf32>) {
  // CHECK: mica.sigmoid %{{.*}} : tensor<?x4xf32>
  %0 = mica.sigmoid %x : tensor<?x4xf32>
  // CHECK: mica.sigmoid %{{.*}} : tensor<?x2x4xbf16>
  %1 = mica.sigmoid %h : tensor<?x2x4xbf16>
  // CHECK: mica.sigmoid_gate %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<?x1xf32>
  %2 = mica.sigmoid_gate %x, %gate : tensor<?x4xf32>, tensor<?x1xf32>
  // CHECK: mica.sigmoid_gate %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<?x4xf32>
  %3 = mica.sigmoid_gate %x, %0 : tensor<?x4xf32>, tensor<?x4xf32>
  return
}

// CHECK-LABEL: func.func @norms
func.func @norms(%x: tensor<?x4xf32>, %h: tensor<?x2x4xbf16>, %w: tensor<4xf16>, %b: tensor<4xf32>) {
  // CHECK: mica.rmsnorm %{{.*}}, %{{.*}} eps(1.000000e-05) : tensor<?x4xf32>, tensor<4xf16> -> tensor<?x4xf32>
  %0 = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x4xf32>, tensor<4xf16> -> tensor<?x4xf32>
  // CHECK: mica.rmsnorm %{{.*}}, %{{.*}} eps(9.9999999999999995E-7) rounding(after_weight) weight_offset(1.000000e+00) : tensor<?x2x4xbf16>, tensor<4xf16> -> tensor<?x2x4xf32>
  %1 = mica.rmsnorm %h, %w eps(1.0e-06) rounding(after_weight) weight_offset(1.0) : tensor<?x2x4xbf16>, tensor<4xf16> -> tensor<?x2x4xf32>
  // CHECK: mica.layernorm %{{.*}}, %{{.*}} eps(1.000000e-05) : tensor<?x4xf32>, tensor<4xf16> -> tensor<?x4xf32>
  %2 = mica.layernorm %x, %w eps(1.0e-05) : tensor<?x4xf32>, tensor<4xf16> -> tensor<?x4xf32>
  // CHECK: mica.layernorm %{{.*}}, %{{.*}} bias(%{{.*}} : tensor<4xf32>) eps(1.000000e-05) : tensor<?x4xf32>, tensor<4xf16> -> tensor<?x4xbf16>
  %3 = mica.layernorm %x, %w bias(%b : tensor<4xf32>) eps(1.0e-05) : tensor<?x4xf32>, tensor<4xf16> -> tensor<?x4xbf16>
  // CHECK: mica.l2norm %{{.*}} eps(1.000000e-03) : tensor<?x2x4xbf16>
  %4 = mica.l2norm %h eps(1.0e-03) : tensor<?x2x4xbf16>
  return
}

// CHECK-LABEL: func.func @products
func.func @products(%tokens: tensor<?xi32>, %x: tensor<?x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xbf16>) {
  // CHECK: mica.embedding %{{.*}}, %{{.*}} : tensor<?xi32>, tensor<4x4xf32> -> tensor<?x4xf32>
  %0 = mica.embedding %tokens, %w : tensor<?xi32>, tensor<4x4xf32> -> tensor<?x4xf32>
  // CHECK: mica.linear %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
  %1 = mica.linear %x, %w : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
  // CHECK: mica.linear %{{.*}}, %{{.*}} bias(%{{.*}} : tensor<4xbf16>) residual(%{{.*}} : tensor<?x4xf32>) kernel(onednn) : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
  %2 = mica.linear %x, %w bias(%b : tensor<4xbf16>) residual(%x : tensor<?x4xf32>) kernel(onednn) : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
  // CHECK: mica.lm_head %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
  %3 = mica.lm_head %x, %w : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
  // CHECK: mica.lm_head %{{.*}}, %{{.*}} kernel(generated) : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
  %4 = mica.lm_head %x, %w kernel(generated) : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
  return
}

// CHECK-LABEL: func.func @positions
func.func @positions(%x: tensor<?x2x4xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>, %cache: !cache, %layer: index) {
  // CHECK: mica.rope %{{.*}}, %{{.*}} half theta(1.000000e+04) : tensor<?x2x4xf32>, tensor<?xi32>
  %0 = mica.rope %x, %p half theta(1.0e+04) : tensor<?x2x4xf32>, tensor<?xi32>
  // CHECK: mica.rope %{{.*}}, %{{.*}} interleaved theta(1.000000e+06) rotary_dim(2) scaling(#mica.linear_scaling<factor = 2.000000e+00 : f64>) : tensor<?x2x4xf32>, tensor<?xi32>
  %1 = mica.rope %x, %p interleaved theta(1.0e+06) rotary_dim(2) scaling(#mica.linear_scaling<factor = 2.0>) : tensor<?x2x4xf32>, tensor<?xi32>
  // CHECK: mica.rope %{{.*}}, %{{.*}} half theta(1.000000e+06) scaling(#mica.yarn_scaling<factor = 1.600000e+01 : f64, beta_fast = 3.200000e+01 : f64, beta_slow = 1.000000e+00 : f64, attention_factor = 1.000000e+00 : f64, original_context = 2048, high_limit = 1>) : tensor<?x2x4xf32>, tensor<?xi32>
  %2 = mica.rope %x, %p half theta(1.0e+06) scaling(#mica.yarn_scaling<factor = 16.0, beta_fast = 32.0, beta_slow = 1.0, attention_factor = 1.0, original_context = 2048, high_limit = 1>) : tensor<?x2x4xf32>, tensor<?xi32>
  // CHECK: mica.rope %{{.*}}, %{{.*}} half theta(1.000000e+06) scaling(#mica.yarn_scaling<factor = 1.600000e+01 : f64, beta_fast = 3.200000e+01 : f64, beta_slow = 1.000000e+00 : f64, attention_factor = 1.000000e+00 : f64, original_context = 2048, high_limit = 3, truncate = false>) : tensor<?x2x4xf32>, tensor<?xi32>
  %3 = mica.rope %x, %p half theta(1.0e+06) scaling(#mica.yarn_scaling<factor = 16.0, beta_fast = 32.0, beta_slow = 1.0, attention_factor = 1.0, original_context = 2048, high_limit = 3, truncate = false>) : tensor<?x2x4xf32>, tensor<?xi32>
  // CHECK: mica.rope %{{.*}}, %{{.*}} half theta(5.000000e+05) scaling(#mica.llama3_scaling<factor = 8.000000e+00 : f64, low_freq_factor = 1.000000e+00 : f64, high_freq_factor = 4.000000e+00 : f64, original_context = 8192>) : tensor<?x2x4xf32>, tensor<?xi32>
  %4 = mica.rope %x, %p half theta(5.0e+05) scaling(#mica.llama3_scaling<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_context = 8192>) : tensor<?x2x4xf32>, tensor<?xi32>
  // CHECK: mica.rope %{{.*}}, %{{.*}} half theta(1.000000e+06) scaling(#mica.proportional_scaling<pairs = 1, factor = 1.000000e+00 : f64>) : tensor<?x2x4xf32>, tensor<?xi32>
  %part = mica.rope %x, %p half theta(1.0e+06) scaling(#mica.proportional_scaling<pairs = 1, factor = 1.0>) : tensor<?x2x4xf32>, tensor<?xi32>
  // CHECK: mica.rope %{{.*}}, %{{.*}} lengths(%{{.*}} : tensor<?xi32>) half theta(1.000000e+04) scaling(#mica.longrope_scaling<short_factors = [1.000000e+00, 2.000000e+00], long_factors = [3.000000e+00, 4.000000e+00], attention_factor = 1.000000e+00 : f64, original_context = 4096>) : tensor<?x2x4xf32>, tensor<?xi32>
  %long = mica.rope %x, %p lengths(%s : tensor<?xi32>) half theta(1.0e+04) scaling(#mica.longrope_scaling<short_factors = [1.0, 2.0], long_factors = [3.0, 4.0], attention_factor = 1.0, original_context = 4096>) : tensor<?x2x4xf32>, tensor<?xi32>
  // CHECK: mica.rope_table %{{.*}} lengths(%{{.*}} : tensor<?xi32>) rotary_dim(4) theta(1.000000e+04) scaling(#mica.dynamic_scaling<factor = 4.000000e+00 : f64, original_context = 4096>) : tensor<?xi32> -> tensor<?x2x2xf32>
  %dynamic = mica.rope_table %p lengths(%s : tensor<?xi32>) rotary_dim(4) theta(1.0e+04) scaling(#mica.dynamic_scaling<factor = 4.0, original_context = 4096>) : tensor<?xi32> -> tensor<?x2x2xf32>
  // CHECK: mica.kv_append %{{.*}}, %{{.*}}[%{{.*}}] at(%{{.*}}, %{{.*}} : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x4xf32>, <3 x 2 x 4 x f32>
  %5 = mica.kv_append %x, %cache[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x4xf32>, !cache
  // CHECK: mica.kv_read %{{.*}}[%{{.*}}] : <3 x 2 x 4 x f32> -> tensor<?x?x2x4xf32>
  %6 = mica.kv_read %5[%layer] : !cache -> tensor<?x?x2x4xf32>
  // CHECK: mica.repeat_kv %{{.*}} times 3 : tensor<?x?x2x4xf32> -> tensor<?x?x6x4xf32>
  %7 = mica.repeat_kv %6 times 3 : tensor<?x?x2x4xf32> -> tensor<?x?x6x4xf32>
  return
}

// CHECK-LABEL: func.func @packed_caches
// CHECK-SAME: !mica.kv_cache<3 x 2 x 4 x bf16, <keys, block = 64, depth = 2>>
// CHECK-SAME: !mica.kv_cache<3 x 2 x 4 x bf16, <values, block = 64, depth = 2>>
func.func @packed_caches(%keys: !packed_keys, %values: !packed_values) {
  return
}

// Caches with a window, before and after layouts are assigned; 0 means no window.
// CHECK-LABEL: func.func @windows
// CHECK-SAME: !mica.kv_cache<3 x 2 x 4 x f32 window(128)>
// CHECK-SAME: !mica.kv_cache<3 x 2 x 4 x bf16 window(1), <keys, block = 64, depth = 2>>
// CHECK-SAME: !mica.kv_cache<3 x 2 x 4 x f32>
func.func @windows(%a: !mica.kv_cache<3 x 2 x 4 x f32 window(128)>,
    %b: !mica.kv_cache<3 x 2 x 4 x bf16 window(1), <keys, block = 64, depth = 2>>, %c: !mica.kv_cache<3 x 2 x 4 x f32 window(0)>) {
  return
}

// int8: the append quantizes rows of any width; attention reads them with f32 queries.
// CHECK-LABEL: func.func @integer_caches
// CHECK-SAME: !mica.kv_cache<3 x 2 x 4 x !mica.int8>
// CHECK-SAME: !mica.kv_cache<3 x 2 x 4 x !mica.int8, <values, block = 64, depth = 4>>
func.func @integer_caches(%x: tensor<?x2x4xf32>, %y: tensor<?x2x4xbf16>, %c: !mica.kv_cache<3 x 2 x 4 x !mica.int8>,
    %d: !mica.kv_cache<3 x 2 x 4 x !mica.int8, <values, block = 64, depth = 4>>, %l: index, %s: tensor<?xi32>, %p: tensor<?xi32>) {
  // CHECK: mica.kv_append {{.*}} : tensor<?x2x4xf32>, <3 x 2 x 4 x !mica.int8>
  %c1 = mica.kv_append %x, %c[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x4xf32>, !mica.kv_cache<3 x 2 x 4 x !mica.int8>
  // CHECK: mica.kv_append {{.*}} : tensor<?x2x4xbf16>, <3 x 2 x 4 x !mica.int8>
  %c2 = mica.kv_append %y, %c1[%l] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x2x4xbf16>, !mica.kv_cache<3 x 2 x 4 x !mica.int8>
  // CHECK: mica.kv_read {{.*}} : <3 x 2 x 4 x !mica.int8> -> tensor<?x?x2x4x!mica.int8>
  %k = mica.kv_read %c2[%l] : !mica.kv_cache<3 x 2 x 4 x !mica.int8> -> tensor<?x?x2x4x!mica.int8>
  // CHECK: mica.attention {{.*}} : tensor<?x2x4xf32>, tensor<?x?x2x4x!mica.int8>, tensor<?x?x2x4x!mica.int8> -> tensor<?x2x4xf32>
  %a = mica.attention %x, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) : tensor<?x2x4xf32>, tensor<?x?x2x4x!mica.int8>, tensor<?x?x2x4x!mica.int8> -> tensor<?x2x4xf32>
  return
}

// CHECK-LABEL: func.func @attention(
func.func @attention(%q: tensor<?x4x4xf32>, %k: tensor<?x?x2x4xf32>, %v: tensor<?x?x2x8xbf16>, %s: tensor<?xi32>, %p: tensor<?xi32>, %mask: tensor<?x?xi1>) {
  // CHECK: mica.attention %{{.*}}, %{{.*}}, %{{.*}} at(%{{.*}}, %{{.*}} : tensor<?xi32>, tensor<?xi32>) causal scale(5.000000e-01) : tensor<?x4x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32> -> tensor<?x4x4xf32>
  %0 = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) : tensor<?x4x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32> -> tensor<?x4x4xf32>
  // CHECK: mica.attention %{{.*}}, %{{.*}}, %{{.*}} at(%{{.*}}, %{{.*}} : tensor<?xi32>, tensor<?xi32>) key_mask(%{{.*}} : tensor<?x?xi1>) full scale(1.000000e+00) window(16) softcap(5.000000e+01) : tensor<?x4x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x8xbf16> -> tensor<?x4x8xf32>
  %1 = mica.attention %q, %k, %v at(%s, %p : tensor<?xi32>, tensor<?xi32>) key_mask(%mask : tensor<?x?xi1>) full scale(1.0) window(16) softcap(5.0e+01) : tensor<?x4x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x8xbf16> -> tensor<?x4x8xf32>
  // CHECK: mica.attention {{.*}} causal scale(5.000000e-01) tiling(<rows = 8, chunk = 512, split = false>) : tensor<?x4x4xf32>
  %2 = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.5) tiling(<rows = 8, chunk = 512, split = false>) : tensor<?x4x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32> -> tensor<?x4x4xf32>
  return
}

// CHECK-LABEL: func.func @experts
func.func @experts(%x: tensor<?x4xf32>, %gate: tensor<3x4xf32>, %g: tensor<3x8x4xf32>, %d: tensor<3x4x8xf32>, %gu: tensor<3x128x4xf32>) {
  // CHECK: mica.moe_gate %{{.*}}, %{{.*}} softmax k(2) normalize : tensor<?x4xf32>, tensor<3x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  %w, %e = mica.moe_gate %x, %gate softmax k(2) normalize : tensor<?x4xf32>, tensor<3x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  // CHECK: mica.moe_gate %{{.*}}, %{{.*}} expert_scales(%{{.*}} : tensor<3xf32>) softmax k(2) normalize : tensor<?x4xf32>, tensor<3x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  %scales = arith.constant dense<2.0> : tensor<3xf32>
  %w2, %e2 = mica.moe_gate %x, %gate expert_scales(%scales : tensor<3xf32>) softmax k(2) normalize : tensor<?x4xf32>, tensor<3x4xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
  // CHECK: mica.moe_gate %{{.*}}, %{{.*}} sigmoid k(1) : tensor<?x4xf32>, tensor<3x4xf32> -> tensor<?x1xf32>, tensor<?x1xi32>
  %w1, %e1 = mica.moe_gate %x, %gate sigmoid k(1) : tensor<?x4xf32>, tensor<3x4xf32> -> tensor<?x1xf32>, tensor<?x1xi32>
  // CHECK: mica.moe_experts %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} up(%{{.*}} : tensor<3x8x4xf32>) silu inner(8) : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<3x8x4xf32>, tensor<3x4x8xf32> -> tensor<?x4xf32>
  %0 = mica.moe_experts %x, %w, %e, %g, %d up(%g : tensor<3x8x4xf32>) silu inner(8) : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<3x8x4xf32>, tensor<3x4x8xf32> -> tensor<?x4xf32>
  // CHECK: mica.moe_experts %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} residual(%{{.*}} : tensor<?x4xf32>) gelu inner(8) : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<3x128x4xf32>, tensor<3x4x8xf32> -> tensor<?x4xf32>
  %1 = mica.moe_experts %x, %w, %e, %gu, %d residual(%x : tensor<?x4xf32>) gelu inner(8) : tensor<?x4xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<3x128x4xf32>, tensor<3x4x8xf32> -> tensor<?x4xf32>
  // CHECK: mica.moe_gate_up %{{.*}}, %{{.*}}, %{{.*}} up(%{{.*}} : tensor<3x8x4xf32>) relu2 : tensor<?x4xf32>, tensor<?x2xi32>, tensor<3x8x4xf32> -> tensor<?x2x8xf32>
  %inner = mica.moe_gate_up %x, %e, %g up(%g : tensor<3x8x4xf32>) relu2 : tensor<?x4xf32>, tensor<?x2xi32>, tensor<3x8x4xf32> -> tensor<?x2x8xf32>
  // CHECK: mica.moe_gate_up %{{.*}}, %{{.*}}, %{{.*}} gelu : tensor<?x4xf32>, tensor<?x2xi32>, tensor<3x128x4xf32> -> tensor<?x2x8xbf16>
  %rounded = mica.moe_gate_up %x, %e, %gu gelu : tensor<?x4xf32>, tensor<?x2xi32>, tensor<3x128x4xf32> -> tensor<?x2x8xbf16>
  // CHECK: mica.moe_down %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} residual(%{{.*}} : tensor<?x4xf32>) : tensor<?x2x8xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<3x4x8xf32> -> tensor<?x4xf32>
  %2 = mica.moe_down %inner, %w, %e, %d residual(%x : tensor<?x4xf32>) : tensor<?x2x8xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<3x4x8xf32> -> tensor<?x4xf32>
  return
}

// CHECK-LABEL: func.func @fused
func.func @fused(%qkv: tensor<?x32xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>, %cache: !cache, %values: !cache, %layer: index, %norm: tensor<4xf32>, %gu: tensor<128x32xf32>) {
  // CHECK: mica.split %{{.*}} : tensor<?x32xf32> -> tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  %q, %k, %v = mica.split %qkv : tensor<?x32xf32> -> tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  // CHECK: mica.rope_table %{{.*}} rotary_dim(4) theta(1.000000e+04) : tensor<?xi32> -> tensor<?x2x2xf32>
  %table = mica.rope_table %p rotary_dim(4) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x2xf32>
  // CHECK: mica.rope_table %{{.*}} rotary_dim(2) theta(1.000000e+04) scaling(#mica.linear_scaling<factor = 4.000000e+00 : f64>) : tensor<?xi32> -> tensor<?x2x1xf32>
  %scaled = mica.rope_table %p rotary_dim(2) theta(1.0e+04) scaling(#mica.linear_scaling<factor = 4.0>) : tensor<?xi32> -> tensor<?x2x1xf32>
  // CHECK: mica.qkv_append %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}[%{{.*}}] at(%{{.*}}, %{{.*}} : tensor<?xi32>, tensor<?xi32>) half : tensor<?x32xf32>, tensor<?x2x2xf32>, <3 x 2 x 4 x f32>, <3 x 2 x 4 x f32> -> tensor<?x4x4xf32>
  %q1, %k1, %v1 = mica.qkv_append %qkv, %table, %cache, %values[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) half : tensor<?x32xf32>, tensor<?x2x2xf32>, !cache, !cache -> tensor<?x4x4xf32>
  // CHECK: mica.qkv_append %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}[%{{.*}}] at(%{{.*}}, %{{.*}} : tensor<?xi32>, tensor<?xi32>) norms(%{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xf32>) interleaved eps(9.9999999999999995E-7) : tensor<?x32xf32>, tensor<?x2x1xf32>, <3 x 2 x 4 x f32>, <3 x 2 x 4 x f32> -> tensor<?x4x4xbf16>
  %q2, %k2, %v2 = mica.qkv_append %qkv, %scaled, %k1, %v1[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) norms(%norm, %norm : tensor<4xf32>, tensor<4xf32>) interleaved eps(1.0e-06) : tensor<?x32xf32>, tensor<?x2x1xf32>, !cache, !cache -> tensor<?x4x4xbf16>
  // CHECK: mica.gated_linear %{{.*}}, %{{.*}} silu : tensor<?x32xf32>, tensor<128x32xf32> -> tensor<?x10xf32>
  %g = mica.gated_linear %qkv, %gu silu : tensor<?x32xf32>, tensor<128x32xf32> -> tensor<?x10xf32>
  // CHECK: mica.gated_linear %{{.*}}, %{{.*}} relu kernel(generated) : tensor<?x32xf32>, tensor<128x32xf32> -> tensor<?x10xbf16>
  %g1 = mica.gated_linear %qkv, %gu relu kernel(generated) : tensor<?x32xf32>, tensor<128x32xf32> -> tensor<?x10xbf16>
  return
}

// CHECK: module attributes {mica.ranks = 4 : i64}
module attributes {mica.ranks = 4 : i64} {
  // CHECK: mica.weight @part shard <axis = 0, ranks = 4> : tensor<2x4xf32>
  mica.weight @part shard <axis = 0, ranks = 4> : tensor<2x4xf32>
  // CHECK: mica.weight @shared from ["k", "v"] concat shard <axis = 0, ranks = 4, replicas = 2> : tensor<4x4xbf16>
  mica.weight @shared from ["k", "v"] concat shard <axis = 0, ranks = 4, replicas = 2> : tensor<4x4xbf16>
  func.func @ranks(%x: tensor<?x4xf32>, %h: tensor<?x2x4xbf16>, %tokens: tensor<?xi32>) {
    // CHECK: mica.all_gather %{{.*}} ranks(4) : tensor<?x4xf32> -> tensor<?x14xf32>
    %0 = mica.all_gather %x ranks(4) : tensor<?x4xf32> -> tensor<?x14xf32>
    // CHECK: mica.all_gather %{{.*}} ranks(4) : tensor<?x2x4xbf16> -> tensor<?x2x16xbf16>
    %1 = mica.all_gather %h ranks(4) : tensor<?x2x4xbf16> -> tensor<?x2x16xbf16>
    // CHECK: mica.all_slice %{{.*}} ranks(4) : tensor<?x14xf32> -> tensor<?x4xf32>
    %2 = mica.all_slice %0 ranks(4) : tensor<?x14xf32> -> tensor<?x4xf32>
    %part = mica.get_weight @part : tensor<2x4xf32>
    // CHECK: mica.sharded_embedding %{{.*}}, %{{.*}} rows(8) ranks(4) : tensor<?xi32>, tensor<2x4xf32> -> tensor<?x4xf32>
    %3 = mica.sharded_embedding %tokens, %part rows(8) ranks(4) : tensor<?xi32>, tensor<2x4xf32> -> tensor<?x4xf32>
    return
  }
}
