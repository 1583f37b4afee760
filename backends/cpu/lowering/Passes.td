// The passes from stage `kernels` to stage `loops`.

#ifndef MICA_BACKENDS_CPU_LOWERING_PASSES
#define MICA_BACKENDS_CPU_LOWERING_PASSES

include "mlir/Pass/PassBase.td"

def LowerToExec : Pass<"cpu-lower-to-exec", "::mlir::ModuleOp"> {
  let summary = "lower mica ops to launches of generated kernels and oneDNN matmuls";
  let description = [{
    Every op becomes an `exec.launch` of a kernel that is generated for the module's `cpu.target`, or an
    `exec.matmul`; caches and packed weights become tensors of their physical shapes. Entry functions get arguments with
    the roles `weights`, `scratch` and `logits`. The rows that a loop over layers carries stay in one buffer: a layer's
    result is copied there unless the layer writes to it directly.

    ```mlir
    func.func private @layer(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>) -> tensor<?x32xf32> {
      %z = mica.add %x, %y : tensor<?x32xf32>
      return %z : tensor<?x32xf32>
    }
    ```
    becomes
    ```mlir
    func.func private @layer(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>) -> tensor<?x32xf32> {
    ...
    %rows = tensor.dim %x, %c0 : tensor<?x32xf32>
    %empty = tensor.empty(%rows) : tensor<?x32xf32>
    %z = exec.launch @add tasks(%rows) ins(%x, %y : ...) outs(%empty : tensor<?x32xf32>) -> tensor<?x32xf32>
    ...
    func.func private @add(%begin: index, %end: index, ...) attributes {exec.kernel = #exec.kernel<"add", []>} {
    scf.for %row = %begin to %end step %c1 {
    scf.for %column = %c0 to %c32 step %c16 {
    %a = vector.load ...
    %b = vector.load ...
    %c = arith.addf %a, %b : vector<16xf32>
    vector.store %c, ...
    ```
  }];
  let dependentDialects = [
    "::mica::exec::ExecDialect", "::mlir::amx::AMXDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect",
    "::mlir::x86vector::X86VectorDialect"];
}

def VerifyInPlace : Pass<"cpu-verify-in-place", "::mlir::ModuleOp"> {
  let summary = "verify that no cache is copied";
  let description = [{
    Follows every argument of the entry functions with the role `cache` through views, calls, loops and launches. A
    `memref.copy` from or to one of its buffers is an error that names the append that caused it, and so is any other
    buffer of a cache's shape, newly allocated or part of the scratch memory, because a cache could be copied to it.
    Entry functions must return the caches that they received, in order; the results are dropped. The bodies of kernels
    are not checked.

    ```mlir
    !cache = memref<2x?x2x?x512xf32>
    func.func private @append(%begin: index, %end: index, %x: memref<?x16xf32>, %cache: !cache) {
      return
    }
    func.func @main(%x: memref<?x16xf32>, %cache: !cache {mica.role = "cache"}, %n: index)
        -> (!cache {mica.role = "cache"}) {
      %one = arith.constant 1 : index
      // expected-error @+1 {{a cache or state would be copied here}}
      %copy = memref.alloc(%n, %n) : !cache
      // expected-error @+1 {{a cache or state would be copied here}}
      memref.copy %cache, %copy : !cache to !cache
      // expected-note @+1 {{for this append (append)}}
      exec.launch @append tasks(%one) ins(%x : memref<?x16xf32>) outs(%copy : !cache)
      return %cache : !cache
    }
    ```
  }];
}

def PlanBuffers : Pass<"cpu-plan-buffers", "::mlir::ModuleOp"> {
  let summary = "place all allocations in one scratch buffer";
  let description = [{
    Buffers of a function that are not live at the same time share memory. Functions that are called one after another
    share memory as well, so results are copied before the next call. Sizes are linear in the number of rows, or in the
    number of rows with logits: the module gets `mica.scratch_per_row`, `mica.scratch_per_output` and
    `mica.scratch_fixed` in bytes.

    ```mlir
    func.func private @f(%begin: index, %end: index, %x: memref<?x16xf32>, %y: memref<?x16xf32>) {
      return
    }
    func.func @main(%x: memref<?x16xf32>, %scratch: memref<?xi8> {mica.role = "scratch"},
        %logits: memref<?x16xf32> {mica.role = "logits"}) {
      %c0 = arith.constant 0 : index
      %rows = memref.dim %x, %c0 : memref<?x16xf32>
      %a = memref.alloc(%rows) : memref<?x16xf32>
      exec.launch @f tasks(%rows) ins(%x : memref<?x16xf32>) outs(%a : memref<?x16xf32>)
      %b = memref.alloc(%rows) : memref<?x16xf32>
      exec.launch @f tasks(%rows) ins(%a : memref<?x16xf32>) outs(%b : memref<?x16xf32>)
      exec.launch @f tasks(%rows) ins(%b : memref<?x16xf32>) outs(%logits : memref<?x16xf32>)
      return
    }
    ```
    becomes
    ```mlir
    module attributes {mica.scratch_fixed = 0 : i64, mica.scratch_per_output = 0 : i64, ... = 128 : i64} {
    ...
    func.func @main(%x: memref<?x16xf32>, %scratch: memref<?xi8> ..., %logits: memref<?x16xf32> ...) {
    %rows = memref.dim %x, ... : memref<?x16xf32>
    %a = memref.view %scratch[...][...] : memref<?xi8> to memref<?x16xf32>
    exec.launch @f ... ins(%x : memref<?x16xf32>) outs(%a : memref<?x16xf32>)
    %c64 = arith.constant 64 : index
    %offset = arith.muli %rows, %c64 : index
    %b = memref.view %scratch[%offset][...] : memref<?xi8> to memref<?x16xf32>
    exec.launch @f ... ins(%a : memref<?x16xf32>) outs(%b : memref<?x16xf32>)
    exec.launch @f ... ins(%b : memref<?x16xf32>) outs(%logits : memref<?x16xf32>)
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect"];
}

def VerifyLoops : Pass<"cpu-verify-loops", "::mlir::ModuleOp"> {
  let summary = "verify the boundary of stage `loops`";
  let description = [{
    The last pass before stage `loops` and the first after it. Checks that only `exec`, `func`, `scf`, `arith`,
    `math`, `memref`, `vector`, `x86vector`, `amx`, weight symbols and calls of LLVM intrinsics are left; that there
    are no tensors and no allocations; that calls are not recursive; and that no cache is copied (see
    `cpu-verify-in-place`):

    ```mlir
    !cache = memref<2x?x2x?x512xf32>
    func.func @main(%keys: !cache {mica.role = "cache"}, %values: !cache {mica.role = "cache"}) {
      // expected-error @+1 {{a cache or state would be copied here}}
      memref.copy %keys, %values : !cache to !cache
      return
    }
    ```
  }];
}

#endif // MICA_BACKENDS_CPU_LOWERING_PASSES
