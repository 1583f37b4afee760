// The passes from stage `kernels` to stage `loops`.

#ifndef MICA_BACKENDS_CPU_LOWERING_PASSES
#define MICA_BACKENDS_CPU_LOWERING_PASSES

include "mlir/Pass/PassBase.td"

def LowerToExec : Pass<"mica-lower-to-exec", "::mlir::ModuleOp"> {
  let summary = "mica ops => launches of generated kernels and oneDNN products, on tensors";
  let description = [{
    Every op becomes an `exec.launch` of a kernel that is generated beside it, or an `exec.matmul`; caches and packed weights become
    tensors of their physical shapes. Entry functions get the arguments `weights`, `scratch` and `logits`.
  }];
  let options = [Option<"bf16Dot", "bf16-dot", "bool", "false", "the target has vdpbf16ps">,
                 Option<"int8Dot", "int8-dot", "bool", "false", "the target has vpdpbusd">];
  let dependentDialects = [
    "::mica::exec::ExecDialect", "::mlir::bufferization::BufferizationDialect", "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect", "::mlir::vector::VectorDialect",
    "::mlir::x86vector::X86VectorDialect"];
}

def VerifyInPlace : Pass<"mica-verify-in-place", "::mlir::ModuleOp"> {
  let summary = "proves that no cache is ever copied";
  let description = [{
    Follows every cache argument of the entry functions through views, calls and loops. A copy from or to one of its
    buffers, or a buffer of a cache's shape that is allocated anew, is an error that names the append which caused it. Entry
    functions must return the caches that they received; the results are dropped.
  }];
}

def PlanBuffers : Pass<"mica-plan-buffers", "::mlir::ModuleOp"> {
  let summary = "allocations => views of one scratch buffer";
  let description = [{
    Buffers of a function that are not alive at the same time share memory. Sizes are linear in the number of rows: the module gets
    `mica.scratch_per_row` and `mica.scratch_fixed` in bytes.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect"];
}

#endif // MICA_BACKENDS_CPU_LOWERING_PASSES
