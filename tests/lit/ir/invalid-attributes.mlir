// RUN: mica-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{factor must be a positive number, got 0}}
func.func private @f() attributes {a = #mica.linear_scaling<factor = 0.0>}

// -----

// expected-error @+1 {{factor must be a positive number, got -1}}
func.func private @f() attributes {a = #mica.yarn_scaling<factor = -1.0, beta_fast = 32.0, beta_slow = 1.0, attention_factor = 1.0, original_context = 2048, high_limit = 31>}

// -----

// expected-error @+1 {{beta_fast must be a positive number, got 0}}
func.func private @f() attributes {a = #mica.yarn_scaling<factor = 16.0, beta_fast = 0.0, beta_slow = 1.0, attention_factor = 1.0, original_context = 2048, high_limit = 31>}

// -----

// expected-error @+1 {{beta_slow must be a positive number, got 0}}
func.func private @f() attributes {a = #mica.yarn_scaling<factor = 16.0, beta_fast = 32.0, beta_slow = 0.0, attention_factor = 1.0, original_context = 2048, high_limit = 31>}

// -----

// expected-error @+1 {{attention_factor must be a positive number}}
func.func private @f() attributes {a = #mica.yarn_scaling<factor = 16.0, beta_fast = 32.0, beta_slow = 1.0, attention_factor = 0x7FF8000000000000 : f64, original_context = 2048, high_limit = 31>}

// -----

// expected-error @+1 {{original_context must be positive, got 0}}
func.func private @f() attributes {a = #mica.yarn_scaling<factor = 16.0, beta_fast = 32.0, beta_slow = 1.0, attention_factor = 1.0, original_context = 0, high_limit = 31>}

// -----

// expected-error @+1 {{high_limit must not be negative, got -1}}
func.func private @f() attributes {a = #mica.yarn_scaling<factor = 16.0, beta_fast = 32.0, beta_slow = 1.0, attention_factor = 1.0, original_context = 2048, high_limit = -1>}

// -----

// expected-error @+1 {{factor must be a positive number, got 0}}
func.func private @f() attributes {a = #mica.llama3_scaling<factor = 0.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_context = 8192>}

// -----

// expected-error @+1 {{low_freq_factor must be a positive number, got 0}}
func.func private @f() attributes {a = #mica.llama3_scaling<factor = 8.0, low_freq_factor = 0.0, high_freq_factor = 4.0, original_context = 8192>}

// -----

// expected-error @+1 {{high_freq_factor must be a positive number}}
func.func private @f() attributes {a = #mica.llama3_scaling<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 0x7FF0000000000000 : f64, original_context = 8192>}

// -----

// expected-error @+1 {{low_freq_factor must be below high_freq_factor}}
func.func private @f() attributes {a = #mica.llama3_scaling<factor = 8.0, low_freq_factor = 4.0, high_freq_factor = 4.0, original_context = 8192>}

// -----

// expected-error @+1 {{original_context must be positive, got -1}}
func.func private @f() attributes {a = #mica.llama3_scaling<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_context = -1>}

// -----

// expected-error @+1 {{columns, depth and k_block must be positive}}
func.func private @f() attributes {a = #mica.packed<columns = 0, depth = 1, k_block = 16>}

// -----

// expected-error @+1 {{k_block must be a multiple of depth}}
func.func private @f() attributes {a = #mica.packed<columns = 64, depth = 2, k_block = 33>}

// -----

// expected-error @+1 {{block must be a positive multiple of depth}}
func.func private @f() attributes {a = #mica.kv_layout<keys, block = 64, depth = 3>}

// -----

// expected-error @+1 {{block must be a positive multiple of depth}}
func.func private @f() attributes {a = #mica.kv_layout<keys, block = 0, depth = 1>}

// -----

// expected-error @+1 {{rows and chunk must be positive}}
func.func private @f() attributes {a = #mica.attention_tiling<rows = 0, chunk = 512, split = false>}

// -----

// expected-error @+1 {{rows and chunk must be positive}}
func.func private @f() attributes {a = #mica.attention_tiling<rows = 1, chunk = 0, split = false>}

// -----

// expected-error @+1 {{heads must not be negative, got -1}}
func.func private @f() attributes {a = #mica.attention_tiling<rows = 1, chunk = 64, split = true, heads = -1>}

// -----

// expected-error @+1 {{only tiles of one row are split, got 2 rows}}
func.func private @f() attributes {a = #mica.attention_tiling<rows = 2, chunk = 512, split = true>}

// -----

// expected-error @+1 {{a cache needs at least one layer, one head and one element}}
func.func private @f(!mica.kv_cache<0 x 2 x 4 x f32>)

// -----

// expected-error @+1 {{a cache needs at least one layer, one head and one element}}
func.func private @f(!mica.kv_cache<1 x 2 x 0 x f32>)

// -----

// expected-error @+1 {{the window of a cache is a number of positions, or 0 for all, got -1}}
func.func private @f(!mica.kv_cache<1 x 2 x 4 x f32 window(-1)>)

// -----

// expected-error @+1 {{a cache holds f32, bf16 or !mica.int8, got 'f16'}}
func.func private @f(!mica.kv_cache<1 x 2 x 4 x f16>)

// -----

// expected-error @+1 {{a cache holds f32, bf16 or !mica.int8, got '!mica.block<int4_g32>'}}
func.func private @f(!mica.kv_cache<1 x 2 x 64 x !mica.block<int4_g32>>)

// -----

// expected-error @+1 {{factors must be positive numbers, got 0}}
func.func private @f() attributes {a = #mica.longrope_scaling<short_factors = [1.0, 1.0], long_factors = [1.0, 0.0], attention_factor = 1.0, original_context = 8>}

// -----

// expected-error @+1 {{short_factors and long_factors must have the same length, got 2 and 1}}
func.func private @f() attributes {a = #mica.longrope_scaling<short_factors = [1.0, 1.0], long_factors = [1.0], attention_factor = 1.0, original_context = 8>}

// -----

// expected-error @+1 {{attention_factor must be a positive number, got 0}}
func.func private @f() attributes {a = #mica.longrope_scaling<short_factors = [1.0], long_factors = [1.0], attention_factor = 0.0, original_context = 8>}

// -----

// expected-error @+1 {{original_context must be positive, got 0}}
func.func private @f() attributes {a = #mica.longrope_scaling<short_factors = [1.0], long_factors = [1.0], attention_factor = 1.0, original_context = 0>}

// -----

// expected-error @+1 {{original_context must be positive, got 0}}
func.func private @f() attributes {a = #mica.dynamic_scaling<factor = 2.0, original_context = 0>}

// -----

// expected-error @+1 {{pairs must be positive, got 0}}
func.func private @f() attributes {a = #mica.proportional_scaling<pairs = 0, factor = 1.0>}

// -----

// expected-error @+1 {{factor must be a positive number, got 0}}
func.func private @f() attributes {a = #mica.proportional_scaling<pairs = 1, factor = 0.0>}

// -----

// expected-error @+1 {{factor must be a positive number, got 0}}
func.func private @f() attributes {a = #mica.dynamic_scaling<factor = 0.0, original_context = 8>}

// -----

// expected-error @+1 {{op has mica.stacked_experts = true, expected a unit attribute on a module}}
module attributes {mica.stacked_experts = true} {
}

// -----

// expected-error @+1 {{op has mica.stacked_experts = unit, expected a unit attribute on a module}}
func.func private @f() attributes {mica.stacked_experts}
