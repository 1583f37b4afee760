// The passes on the `mica` dialect, in the order in which the pipelines run them.

#ifndef MICA_PASSES
#define MICA_PASSES

include "mlir/Pass/PassBase.td"

class Mica_PrecisionOption<string name, string what> : Option<name, name, "::mica::Precision", "::mica::Precision::F32",
    "precision of " # what, [{llvm::cl::values(clEnumValN(::mica::Precision::F32, "f32", "32 bits"),
                                            clEnumValN(::mica::Precision::BF16, "bf16", "the upper 16 bits of f32"))}]>;

// Verifiers of stage borders ---------------------------------------------------------------------------------------

def VerifyModel : Pass<"mica-verify-model", "::mlir::ModuleOp"> {
  let summary = "border of stage `model`";
  let description = [{
    Only ops of `mica`, `func` and `arith`, none of them made by fusion; `@main` is
    `(tokens, sequences, positions, outputs : tensor<?xi32>, caches...) -> (logits : tensor<?xVxf32>, the same caches...)`;
    and a cache is a value that one op consumes: an append, a call or a loop. Any use after that is an error:

    ```mlir
    %next = mica.kv_append %k, %cache[%layer] at(...) : ...
    %old = mica.kv_read %cache[%layer] : ...   // error: the cache is used after mica.kv_append consumed it
    ```
  }];
}

def VerifyFused : Pass<"mica-verify-fused", "::mlir::ModuleOp"> {
  let summary = "border of stage `fused`";
  let description = [{
    As `mica-verify-model`, with the ops that fusion makes; and no `mica.repeat_kv` of a cache is left, because it would copy
    the cache once per layer and step:

    ```mlir
    %keys = mica.kv_read %cache[%layer] : ...
    %r = mica.repeat_kv %keys times 2 : ...    // error
    ```
  }];
}

def VerifyKernels : Pass<"mica-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "border of stage `kernels`";
  let description = [{
    Every product (`linear`, `lm_head`, `gated_linear`) says who computes it, `attention` how it is cut, every weight where the program
    stores it, every cache which physical form it has; gated products by oneDNN are decomposed. `scf.for` over layers is allowed.

    ```mlir
    %y = mica.linear %x, %w : ...              // error: has no kernel
    mica.weight @"norm.weight" : tensor<64xf32> // error: has no offset
    ```
  }];
}

// model -> fused ------------------------------------------------------------------------------------------------------

def AssignPrecision : Pass<"mica-assign-precision", "::mlir::ModuleOp"> {
  let summary = "the precision of weights and caches";
  let description = [{
    Matrices that rows are multiplied with or gathered from get the precision `weights`, caches the precision `kv`; gains,
    biases and the gates of experts are f32. Residual stream, norms, softmax and accumulation stay f32: a value is rounded
    once, where it enters a product (or the queries meet narrower keys), and all products of a value share the cast.
    With `weights=bf16`:

    ```mlir
    %q = mica.linear %x, %wq : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
    %k = mica.linear %x, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
    ```
    becomes
    ```mlir
    %b = mica.cast %x : tensor<?x32xf32> to tensor<?x32xbf16>
    %q = mica.linear %b, %wq : tensor<?x32xbf16>, tensor<32x32xbf16> -> tensor<?x32xf32>
    %k = mica.linear %b, %wk : tensor<?x32xbf16>, tensor<16x32xbf16> -> tensor<?x16xf32>
    ```
  }];
  let options = [Mica_PrecisionOption<"weights", "matrices">, Mica_PrecisionOption<"kv", "caches">];
  let dependentDialects = ["::mica::MicaDialect"];
}

def FoldRepeatKv : Pass<"mica-fold-repeat-kv", "::mlir::func::FuncOp"> {
  let summary = "attention reads shared key/value heads in place";
  let description = [{
    `attention(q, repeat_kv(k), repeat_kv(v)) => attention(q, k, v)`: query head h reads key head h / R anyway.

    ```mlir
    %r = mica.repeat_kv %k times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
    %s = mica.repeat_kv %v times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
    %y = mica.attention %q, %r, %s at(...) causal scale(0.35) : ...
    ```
    becomes
    ```mlir
    %y = mica.attention %q, %k, %v at(...) causal scale(0.35) : ...
    ```
  }];
}

def FuseGatedLinear : Pass<"mica-fuse-gated-linear", "::mlir::ModuleOp"> {
  let summary = "gate and up projection in one product";
  let description = [{
    `mul(activation(linear(x, g)), linear(x, u)) => gated_linear(x, gu)`, where gu holds g and u in alternating blocks of 64 rows;
    `moe_experts(x, g, up(u)) => moe_experts(x, gu)` likewise, expert by expert. g and u are arguments of the function; at
    every call the two weights become one:

    ```mlir
    mica.weight @"gate_proj.weight" : tensor<72x32xf32>
    mica.weight @"up_proj.weight" : tensor<72x32xf32>
    ```
    becomes
    ```mlir
    mica.weight @"gate_up_proj.weight" from ["gate_proj.weight", "up_proj.weight"] interleave : tensor<256x32xf32>
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect"];
}

def MergeLinears : Pass<"mica-merge-linears", "::mlir::ModuleOp"> {
  let summary = "products of the same rows become one";
  let description = [{
    `linear(x, a), linear(x, b), ... => split(linear(x, [a; b; ...]))` for weights that are arguments of the function, all with
    bias or all without; at every call the weights become one:

    ```mlir
    mica.weight @"q_proj.weight" : tensor<32x32xf32>
    mica.weight @"k_proj.weight" : tensor<16x32xf32>
    ```
    becomes
    ```mlir
    mica.weight @"qk_proj.weight" from ["q_proj.weight", "k_proj.weight"] concat : tensor<48x32xf32>
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect"];
}

def FuseResidual : Pass<"mica-fuse-residual", "::mlir::func::FuncOp"> {
  let summary = "products add the residual stream themselves";
  let description = [{
    `add(r, linear(x, w)) => linear(x, w) residual(r)`, likewise for `moe_experts`. Several products are
    chained: `add(r, add(a, b)) => b residual(a residual(r))`, which changes the order of f32 additions (within 1e-5 relative).

    ```mlir
    %y = mica.linear %x, %w : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
    %z = mica.add %r, %y : tensor<?x32xf32>
    ```
    becomes
    ```mlir
    %z = mica.linear %x, %w residual(%r : tensor<?x32xf32>) : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
    ```
  }];
}

def FuseQkvAppend : Pass<"mica-fuse-qkv-append", "::mlir::func::FuncOp"> {
  let summary = "q/k norms, rope and both appends in one pass over q, k and v";
  let description = [{
    `q, k, v = split(qkv); rope(norm(q)), kv_append(rope(norm(k))), kv_append(v) => qkv_append(qkv, rope_table)`, with or without
    the norms. Both ropes must be the same, both appends must go to the same layer and rows.

    ```mlir
    %q, %k, %v = mica.split %qkv : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>
    ...
    ```
    becomes
    ```mlir
    %table = mica.rope_table %positions rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
    %q, %k1, %v1 = mica.qkv_append %qkv, %table, %k0, %v0[%layer] at(...) half : ...
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect"];
}

def HoistRopeTables : Pass<"mica-hoist-rope-tables", "::mlir::ModuleOp"> {
  let summary = "cosines and sines are computed once per step, not once per layer";
  let description = [{
    `f(positions) { rope_table(positions) } => f(positions, table)`, and the callers compute the table: one per distinct
    (positions, rotary_dim, theta, scaling), until it stands in a function that is not called itself.

    ```mlir
    func.func private @layer(%positions: tensor<?xi32>) { %t = mica.rope_table %positions ... }
    ```
    becomes
    ```mlir
    func.func private @layer(%positions: tensor<?xi32>, %t: tensor<?x2x4xf32>) { ... }
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect"];
}

def FuseCasts : Pass<"mica-fuse-casts", "::mlir::func::FuncOp"> {
  let summary = "an op rounds its own result";
  let description = [{
    `cast(op(...)) => op(...)` with the narrower result type, where op is `rmsnorm`, `layernorm`, `attention`, `gated_linear`, `glu` or
    the queries of `qkv_append`, and no one else reads the wide result; `cast(merge_heads(x)) => merge_heads(cast(x))` on the way.

    ```mlir
    %n = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
    %b = mica.cast %n : tensor<?x32xf32> to tensor<?x32xbf16>
    ```
    becomes
    ```mlir
    %b = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xbf16>
    ```
  }];
}

// fused -> kernels ----------------------------------------------------------------------------------------------------

def SpecializePhases : Pass<"mica-specialize-phases", "::mlir::ModuleOp"> {
  let summary = "one copy of the model for few rows and one for many";
  let description = [{
    `f => f_few, f_many` for every function. `f_few` has the attribute `mica.max_rows = crossing`: it is called for at most so many rows,
    as in decoding; `f_many` is for more, as in reading a prompt. The module says where the crossing is.

    ```mlir
    func.func @main(...)
    ```
    becomes
    ```mlir
    func.func @main_few(...) attributes {mica.max_rows = 16 : i64}
    func.func @main_many(...)
    ```
  }];
  let options = [Option<"crossing", "crossing", "int64_t", "16", "the most rows that `_few` functions are called for">];
}

def SelectKernels : Pass<"mica-select-kernels", "::mlir::func::FuncOp"> {
  let summary = "who computes each product, and how attention is cut";
  let description = [{
    Writes `kernel(generated)` or `kernel(onednn)` on `linear`, `lm_head` and `gated_linear`: generated for few rows
    (`mica.max_rows`), where memory is the limit, and for products so small that a library call would cost more than it saves;
    oneDNN otherwise, where the target's oneDNN is fast in that format. Writes `tiling` on `attention`: single rows, split along
    positions, for few rows, and tiles of rows otherwise. `Kernels/CostModel.h` has the rules.

    ```mlir
    %y = mica.linear %x, %w : ...                   => mica.linear %x, %w kernel(generated) : ...
    %a = mica.attention ... scale(0.5) : ...        => mica.attention ... scale(0.5) tiling(<rows = 8, chunk = 512, split = false>) : ...
    ```
  }];
  let options = [
    Option<"manyRows", "many-rows", "int64_t", "64", "rows that a call of a `_many` function is assumed to have">,
    Option<"minWork", "min-work", "int64_t", "262144", "multiply-adds below which a library call does not pay">,
    Option<"onednnF32", "onednn-f32", "bool", "true", "whether oneDNN is fast for f32 weights on the target">,
    Option<"onednnBf16", "onednn-bf16", "bool", "true", "whether oneDNN is fast for bf16 weights on the target">];
}

def DecomposeGatedLinear : Pass<"mica-decompose-gated-linear", "::mlir::func::FuncOp"> {
  let summary = "oneDNN computes a gated product without its epilogue";
  let description = [{
    `gated_linear kernel(onednn) => glu(linear kernel(onednn))`.

    ```mlir
    %h = mica.gated_linear %x, %w silu kernel(onednn) : tensor<?x64xf32>, tensor<384x64xf32> -> tensor<?x172xf32>
    ```
    becomes
    ```mlir
    %p = mica.linear %x, %w kernel(onednn) : tensor<?x64xf32>, tensor<384x64xf32> -> tensor<?x384xf32>
    %h = mica.glu %p silu : tensor<?x384xf32> -> tensor<?x172xf32>
    ```
  }];
}

def AssignLayouts : Pass<"mica-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "physical forms of weights and caches, and where weights are stored";
  let description = [{
    A matrix that rows are multiplied with is packed: the encoding of its type says so (`#mica.packed`), in the symbol and in
    all values that carry the weight; one that is the embedding table at the same time is packed as well; gains,
    biases and a table that is only gathered from stay plain. Offsets are multiples of 64 bytes, in the order
    in which the calls use the weights, so that the same weight of neighbouring layers of a kind lies at a constant distance.

    ```mlir
    mica.weight @"w" : tensor<172x64xf32>
    ```
    becomes
    ```mlir
    mica.weight @"w" at 0 bytes 49152 : tensor<172x64xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>>
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect"];
}

def RollLayers : Pass<"mica-roll-layers", "::mlir::ModuleOp"> {
  let summary = "one loop over layers instead of one call per layer";
  let description = [{
    Consecutive calls of one layer function, for layers i, i + 1, ..., become a loop that carries what one call hands to the next;
    `mica.select_weight` picks the weights of a turn:

    ```mlir
    %a = call @layer(%x, %zero, %w0) : ...
    %b = call @layer(%a, %one, %w1) : ...
    ```
    becomes
    ```mlir
    %b = scf.for %i = %c0 to %c2 step %c1 iter_args(%y = %x) {
      %w = mica.select_weight [@w0, @w1][%i] : tensor<...>
      %z = func.call @layer(%y, %i, %w) : ...
      scf.yield %z
    }
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

#endif // MICA_PASSES
