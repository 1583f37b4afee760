// RUN: mica-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{'mica.weight' op needs a tensor type of static, non-empty shape}}
mica.weight @w : tensor<?x4xf32>

// -----

// expected-error @+1 {{'mica.weight' op needs a tensor type of static, non-empty shape}}
mica.weight @w : tensor<0x4xf32>

// -----

// expected-error @+1 {{'mica.weight' op holds f32, bf16, f16 or !mica.block, got 'i32'}}
mica.weight @w : tensor<4xi32>

// -----

// expected-error @+1 {{'mica.weight' op has an empty list of sources}}
mica.weight @w from [] : tensor<4xf32>

// -----

// expected-error @+1 {{'mica.weight' op has several sources and must say how they are composed: concat, stack or interleave}}
mica.weight @w from ["a", "b"] : tensor<4xf32>

// -----

// expected-error @+1 {{'mica.weight' op has 3 sources, not a multiple of parts 2}}
mica.weight @w from ["a", "b", "c"] stack parts(2) : tensor<2x128x4xf32>

// -----

// expected-error @+1 {{'mica.weight' op has 2 sources, not a multiple of parts 0}}
mica.weight @w from ["a", "b"] stack parts(0) : tensor<2x128x4xf32>

// -----

// expected-error @+1 {{'mica.weight' op stacks 2 entries into a leading axis of size 3}}
mica.weight @w from ["a", "b"] stack : tensor<3x4xf32>

// -----

// expected-error @+1 {{'mica.weight' op interleaves blocks of 64 rows of 2 sources, but has 64 rows}}
mica.weight @w from ["a", "b"] interleave : tensor<64x4xf32>

// -----

func.func @f() {
  // expected-error @+1 {{'mica.get_weight' op refers to @nothing, which is not a mica.weight}}
  %0 = mica.get_weight @nothing : tensor<4xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{'mica.get_weight' op refers to @f, which is not a mica.weight}}
  %0 = mica.get_weight @f : tensor<4xf32>
  return
}

// -----

mica.weight @w : tensor<4xf32>
func.func @f() {
  // expected-error @+1 {{'mica.get_weight' op has type 'tensor<5xf32>', but @w is 'tensor<4xf32>'}}
  %0 = mica.get_weight @w : tensor<5xf32>
  return
}

// -----

// expected-error @+1 {{'mica.weight' op requires 'sources' if 'compose' is present}}
"mica.weight"() <{sym_name = "w", type = tensor<4xf32>, compose = #mica<compose concat>}> : () -> ()

// -----

func.func @f(%i: index) {
  // expected-error @+1 {{'mica.select_weight' op selects from an empty list of weights}}
  %0 = mica.select_weight [][%i] : tensor<4xf32>
  return
}

// -----

func.func @f(%i: index) {
  // expected-error @+1 {{'mica.index_table' op selects from an empty list of numbers}}
  %0 = mica.index_table [][%i]
  return
}

// -----

func.func @f(%i: index) {
  // expected-error @+1 {{'mica.select_weight' op refers to @f, which is not a mica.weight}}
  %0 = mica.select_weight [@f][%i] : tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{'mica.equalize' op needs a tensor on both sides}}
mica.equalize rows ["norm.weight"] columns []

// -----

// expected-error @+1 {{'mica.weight' op has a source without a name}}
mica.weight @q from [""] : tensor<2x4xf32>

// -----

// expected-error @+1 {{a slice names no tensor}}
mica.weight @q from [#mica.slice<"", transposed>] : tensor<2x4xf32>

// -----

// expected-error @+1 {{entry -1 of a slice is negative}}
mica.weight @q from [#mica.slice<"qkv", entry -1>] : tensor<2x4xf32>

// -----

// expected-error @+1 {{a slice has rows 4 to 2 of 8, expected 0 <= first < last <= period}}
mica.weight @q from [#mica.slice<"qkv", rows 4 to 2 of 8>] : tensor<2x4xf32>

// -----

// expected-error @+1 {{a slice has rows 4 to 9 of 8, expected 0 <= first < last <= period}}
mica.weight @q from [#mica.slice<"qkv", rows 4 to 9 of 8>] : tensor<2x4xf32>

// -----

// expected-error @+1 {{as_columns requires rows; use transposed for the whole tensor}}
mica.weight @q from [#mica.slice<"qkv", entry 1, as_columns>] : tensor<2x4xf32>

// -----

// expected-error @+1 {{expected an entry, transposed or rows; for the whole tensor, use its name}}
mica.weight @q from [#mica.slice<"qkv">] : tensor<2x4xf32>

// -----

// expected-error @+1 {{'turned' is not a parameter of a slice, expected entry, transposed, rows or as_columns}}
mica.weight @q from [#mica.slice<"qkv", turned>] : tensor<2x4xf32>

// -----

// expected-error @+1 {{attribute 'sources' failed to satisfy constraint: tensors of the checkpoint and parts of such}}
mica.weight @q from [7] : tensor<2x4xf32>

// -----

// expected-error @+1 {{attribute 'columns' failed to satisfy constraint: tensors of the checkpoint and parts of such}}
mica.equalize rows ["norm.weight"] columns [@q]
