// The passes from stage `fused` to stage `kernels` that know the processor.

#ifndef MICA_BACKENDS_CPU_DISPATCH_PASSES
#define MICA_BACKENDS_CPU_DISPATCH_PASSES

include "mlir/Pass/PassBase.td"

def SelectKernels : Pass<"cpu-select-kernels", "::mlir::func::FuncOp"> {
  let summary = "select kernels and attention tilings";
  let description = [{
    Writes `kernel(generated)` or `kernel(onednn)` on `linear`, `lm_head` and `gated_linear`, and `tiling` on
    `attention`, and nothing else. Products are generated for few rows (`mica.max_rows`), where memory is the limit, for
    integer rows, for bf16 where tile registers take it, and where they are so small that a library call would cost more
    than it saves; oneDNN otherwise, where it is fast in that format on the module's target. Mostly one row of a prompt,
    its last, reaches an `lm_head`: it is generated.
    Attention of few rows is cut into single rows and chunks of positions, that of many rows and of prompts into tiles
    of rows. `backends/cpu/dispatch/CostModel.h` has the rules.

    ```mlir
    func.func @few(%x: tensor<?x512xf32>, %w: tensor<512x512xf32>) -> tensor<?x512xf32>
        attributes {mica.max_rows = 16 : i64} {
      %y = mica.linear %x, %w : tensor<?x512xf32>, tensor<512x512xf32> -> tensor<?x512xf32>
      return %y : tensor<?x512xf32>
    }
    func.func @many(%x: tensor<?x512xf32>, %w: tensor<512x512xf32>) -> tensor<?x512xf32> {
      %y = mica.linear %x, %w : tensor<?x512xf32>, tensor<512x512xf32> -> tensor<?x512xf32>
      return %y : tensor<?x512xf32>
    }
    func.func @attend(%q: tensor<?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>)
        -> tensor<?x8x64xf32> {
      %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.125)
          : tensor<?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32> -> tensor<?x8x64xf32>
      return %y : tensor<?x8x64xf32>
    }
    ```
    becomes
    ```mlir
    func.func @few(%x: tensor<?x512xf32>, %w: tensor<512x512xf32>) -> tensor<?x512xf32>
        attributes {mica.max_rows = 16 : i64} {
      %y = mica.linear %x, %w kernel(generated) : tensor<?x512xf32>, tensor<512x512xf32> -> tensor<?x512xf32>
      return %y : tensor<?x512xf32>
    }
    func.func @many(%x: tensor<?x512xf32>, %w: tensor<512x512xf32>) -> tensor<?x512xf32> {
      %y = mica.linear %x, %w kernel(onednn) : tensor<?x512xf32>, tensor<512x512xf32> -> tensor<?x512xf32>
      return %y : tensor<?x512xf32>
    }
    func.func @attend(%q: tensor<?x8x64xf32>, %k: tensor<?x?x2x64xf32>, %s: tensor<?xi32>, %p: tensor<?xi32>)
        -> tensor<?x8x64xf32> {
      %y = mica.attention %q, %k, %k at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.125)
          tiling(<rows = 8, chunk = 512, split = false>)
          : tensor<?x8x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32> -> tensor<?x8x64xf32>
      return %y : tensor<?x8x64xf32>
    }
    ```
  }];
  let options = [
    Option<"manyRows", "many-rows", "int64_t", "KernelCosts().manyRows",
           "rows that a call of a `_many` function is assumed to have">,
    Option<"minWork", "min-work", "int64_t", "KernelCosts().minWork",
           "multiply-adds below which a library call does not pay">];
}

def AssignLayouts : Pass<"cpu-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "assign the layouts of weights and caches, and the offsets of weights";
  let description = [{
    A matrix that rows are multiplied with is packed: the encoding of its type says so (`#mica.packed`), in the symbol
    and in all values that carry the weight; one that is the embedding table at the same time is packed as well; gains,
    biases and a table that is only gathered from stay plain. Offsets are multiples of 64 bytes, of 4096 for weights of
    64 KiB and more (and of all that one operation takes, if one of them is so large, for the first), in the order in
    which the calls use the weights, so that the same weight of neighboring layers of a kind lies at a constant
    distance.

    ```mlir
    mica.weight @norm : tensor<64xf32>
    mica.weight @w : tensor<172x64xf32>
    func.func @main(%x: tensor<?x64xf32>) -> tensor<?x172xf32> {
      %norm = mica.get_weight @norm : tensor<64xf32>
      %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
      %w = mica.get_weight @w : tensor<172x64xf32>
      %y = mica.linear %n, %w : tensor<?x64xf32>, tensor<172x64xf32> -> tensor<?x172xf32>
      return %y : tensor<?x172xf32>
    }
    ```
    becomes
    ```mlir
    #packed = #mica.packed<columns = 64, depth = 1, k_block = 16>
    mica.weight @norm at 0 bytes 256 : tensor<64xf32>
    mica.weight @w at 256 bytes 49152 : tensor<172x64xf32, #packed>
    func.func @main(%x: tensor<?x64xf32>) -> tensor<?x172xf32> {
      %norm = mica.get_weight @norm : tensor<64xf32>
      %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
      %w = mica.get_weight @w : tensor<172x64xf32, #packed>
      %y = mica.linear %n, %w : tensor<?x64xf32>, tensor<172x64xf32, #packed> -> tensor<?x172xf32>
      return %y : tensor<?x172xf32>
    }
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect"];
}

def VerifyKernels : Pass<"cpu-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "verify the boundary of stage `kernels`";
  let description = [{
    The matrices of every product are packed. Products that a library can compute (`linear`, `lm_head`, `gated_linear`)
    say which kernel does, `attention` how it is cut, every weight where the program stores it, every cache which
    physical form it has. `scf.for` over layers is allowed.

    ```mlir
    #packed = #mica.packed<columns = 64, depth = 1, k_block = 16>
    func.func private @layer(%x: tensor<?x32xf32>, %w: tensor<64x32xf32, #packed>) -> tensor<?x64xf32> {
      // expected-error @+1 {{has no kernel: run cpu-select-kernels}}
      %y = mica.linear %x, %w : tensor<?x32xf32>, tensor<64x32xf32, #packed> -> tensor<?x64xf32>
      return %y : tensor<?x64xf32>
    }
    ```
  }];
}

#endif // MICA_BACKENDS_CPU_DISPATCH_PASSES
