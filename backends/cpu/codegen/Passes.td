// The passes between stage `loops` and the LLVM dialect.

#ifndef MICA_BACKENDS_CPU_CODEGEN_PASSES
#define MICA_BACKENDS_CPU_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

def ForwardEntryPass : Pass<"cpu-forward-entry", "::mlir::ModuleOp"> {
  let summary = "build mica_forward, which picks an entry function by the number of rows";
  let description = [{
    The public functions of stage `loops` take the arguments of the program's ABI as memrefs. Those with `mica.max_rows = N` serve
    up to N rows, the one without serves any number. The pass makes them private and adds `mica_forward`, which takes an array
    of pointers to memref descriptors, one per argument, and calls the one with the smallest limit that is enough. The symbols
    of the weights are dropped: their places are constants in the code.

    ```mlir
    func.func @main_few(%tokens: memref<?xi32>, ...) attributes {mica.max_rows = 16 : i64}
    func.func @main_many(%tokens: memref<?xi32>, ...)
    ```
    becomes
    ```mlir
    func.func @mica_forward(%descriptors: !llvm.ptr) {
      %tokens = ...                      // loaded through descriptors[0]
      %rows = memref.dim %tokens, %c0 : memref<?xi32>
      %few = arith.cmpi sle, %rows, %c16 : index
      scf.if %few { func.call @main_few(%tokens, ...) } else { func.call @main_many(%tokens, ...) }
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def LowerExecPass : Pass<"cpu-lower-exec", "::mlir::ModuleOp"> {
  let summary = "turn launches and products into calls of the program's runtime";
  let description = [{
    A kernel, that is a function which `exec.launch` names, becomes an `llvm.func` that takes of each memref only the pointer and
    what its type leaves open, with `llvm.noalias` where the argument said so; and a `.task` function that reads these from a
    context in memory:

    ```mlir
    exec.launch @scale tasks(%rows) ins(%x : memref<?x64xf32>) outs(%y : memref<?x64xf32>)
    ```
    becomes
    ```mlir
    // context <- pointer of x, rows of x, pointer of y, rows of y
    llvm.call @mica_rt_parallel_for(@scale.task, %context, %rows)
    ```
    One constant task is a direct call. The context stands once per function, on its stack: launches follow one another.
    `exec.matmul` becomes a call of `mica_rt_matmul`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::func::FuncDialect"];
}

def ExpandMathPass : Pass<"cpu-expand-math"> {
  let summary = "compute exp, tanh, sin, ... by polynomials";
  let description = [{
    Replaces functions that would become calls of libm by polynomials on scalars and vectors of f32, and `rsqrt` by a square root
    and a division. Fails, naming the op, if one is left that no instruction computes.

    ```mlir
    %y = math.rsqrt %x : vector<16xf32>
    // becomes
    %r = math.sqrt %x : vector<16xf32>
    %y = arith.divf %one, %r : vector<16xf32>
    ```
    Sine and cosine reduce their argument by three parts of pi/2 with fused multiply-adds, as the angles of rope reach
    thousands; up to 2^17 their error is below 2^-22.
  }];
  let dependentDialects = ["::mlir::math::MathDialect", "::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect"];
}

def ExpandBf16Pass : Pass<"cpu-expand-bf16"> {
  let summary = "convert between f32 and bf16 by integer instructions";
  let description = [{
    For targets without AVX512_BF16, where LLVM would call a function per element. Rounds to nearest even, keeps NaN.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect"];
}

def Bf16AsIntegersPass : Pass<"cpu-bf16-as-integers", "::mlir::ModuleOp"> {
  let summary = "replace the type bf16 by i16";
  let description = [{
    Runs in the LLVM dialect for targets without AVX512_BF16, after `cpu-expand-bf16`: values of bf16 are only moved there, but
    LLVM would take the elements of a masked store through f32 and round them back by a function call. Fails, naming the op, where
    something still computes with bf16.

    ```mlir
    %v = llvm.load %p : !llvm.ptr -> vector<16xbf16>
    // becomes
    %v = llvm.load %p : !llvm.ptr -> vector<16xi16>
    ```
  }];
}

def HoistAllocasPass : Pass<"cpu-hoist-allocas"> {
  let summary = "move stack buffers to their function's entry";
  let description = [{
    A `memref.alloca` inside a loop would take new stack in every iteration. Fails, naming the op, on one whose size is not constant
    and on any `memref.alloc`: memory is planned before this stage.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def CheckLlvmPass : Pass<"cpu-check-llvm", "::mlir::ModuleOp"> {
  let summary = "check that only the LLVM dialect is left and only the runtime is called";
  let description = [{
    Fails, naming the op and its place, on ops of other dialects, on calls of functions that a program does not have, and on
    intrinsics that LLVM turns into such calls.
  }];
}

#endif // MICA_BACKENDS_CPU_CODEGEN_PASSES
