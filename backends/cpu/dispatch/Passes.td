// The passes from stage `fused` to stage `kernels` that depend on the processor.

#ifndef MICA_BACKENDS_CPU_DISPATCH_PASSES
#define MICA_BACKENDS_CPU_DISPATCH_PASSES

include "mlir/Pass/PassBase.td"

def SelectKernels : Pass<"cpu-select-kernels", "::mlir::func::FuncOp"> {
  let summary = "select kernels and attention tilings";
  let description = [{
    Sets `kernel(generated)` or `kernel(onednn)` on `linear`, `lm_head` and `gated_linear`, and `tiling` on
    `attention`, and nothing else. Generated kernels are selected for small batches (`mica.max_rows`), which are
    memory-bound, for integer rows, for bf16 if the target has AMX tiles, and for matmuls so small that a library call
    would cost more than it saves; otherwise oneDNN, if it is fast in that format on the module's target. `lm_head`
    usually has one row per prompt, its last, and uses a generated kernel.
    Attention of small batches is split into single rows and chunks of positions, that of large batches and of prompts
    into tiles of rows. The rules are in `backends/cpu/dispatch/CostModel.h`.

    ```mlir
    func.func @small(%x: tensor<?x512xf32>, %w: tensor<512x512xf32>) -> tensor<?x512xf32>
        attributes {mica.max_rows = 16 : i64} {
      %y = mica.linear %x, %w : tensor<?x512xf32>, tensor<512x512xf32> -> tensor<?x512xf32>
      return %y : tensor<?x512xf32>
    }
    func.func @large(%x: tensor<?x512xf32>, %w: tensor<512x512xf32>) -> tensor<?x512xf32> {
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
    func.func @small(%x: tensor<?x512xf32>, %w: tensor<512x512xf32>) -> tensor<?x512xf32>
        attributes {mica.max_rows = 16 : i64} {
      %y = mica.linear %x, %w kernel(generated) : tensor<?x512xf32>, tensor<512x512xf32> -> tensor<?x512xf32>
      return %y : tensor<?x512xf32>
    }
    func.func @large(%x: tensor<?x512xf32>, %w: tensor<512x512xf32>) -> tensor<?x512xf32> {
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
    Option<"largeBatch", "large-batch", "int64_t", "KernelCosts().largeBatch",
           "assumed number of rows of a call to a `_large` function">,
    Option<"minWork", "min-work", "int64_t", "KernelCosts().minWork",
           "minimum number of multiply-adds for a library call">];
}

def AssignLayouts : Pass<"cpu-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "assign the layouts of weights and caches, and the offsets of weights";
  let description = [{
    Matrices of matmuls are packed, which is expressed by the encoding of the type (`#mica.packed`) of the symbol
    and of all values that hold the weight. This includes an embedding table tied to lm_head; norm weights, biases and
    tables that are only gathered from are not packed. Offsets are multiples of 64 bytes, or of 4096 for weights of at
    least 64 KiB (if an op uses several weights, one of them this large, only the first is aligned to 4096). Weights are
    stored in the order in which calls use them, so that the same weight of consecutive layers of one type is at a
    constant distance.

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
    Checks that the matrices of all matmuls are packed, that matmuls that a library can compute (`linear`, `lm_head`,
    `gated_linear`) have a kernel, `attention` has a tiling, every weight has an offset in the program, and every cache
    has a layout. `scf.for` over layers is allowed.

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
