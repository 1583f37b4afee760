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
    Every product (`linear`, `lm_head`, `gated_linear`) says who computes it, every weight where the program stores
    it, every cache which physical form it has; gated products by oneDNN are decomposed. `scf.for` over layers is allowed.

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

// fused -> kernels ----------------------------------------------------------------------------------------------------

#endif // MICA_PASSES
