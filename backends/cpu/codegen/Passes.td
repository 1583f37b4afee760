// The passes between stage `loops` and the LLVM dialect.

#ifndef MICA_BACKENDS_CPU_CODEGEN_PASSES
#define MICA_BACKENDS_CPU_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

def ForwardEntryPass : Pass<"cpu-forward-entry", "::mlir::ModuleOp"> {
  let summary = "build mica_forward, which dispatches on the role and number of rows";
  let description = [{
    The public functions of stage `loops` take the arguments of the program's ABI as memrefs. Those with
    `mica.max_rows = N` handle up to N rows, the one without it any number. The pass adds `mica_forward`, which
    takes an array of pointers to memref descriptors, one per argument, and the role of all rows (0 decode, 1 prompt);
    `cpu-lower-exec` appends the runtime table.
    `mica_forward` calls the function with the smallest sufficient limit, and with the given `mica.row_role` if
    functions have roles. The descriptors are in the order of the arguments, which the manifest lists by their
    `mica.role`. All other functions become internal, so that the object exports a single symbol. The weight symbols
    are dropped: their offsets are constants in the code.

    ```mlir
    func.func @main_small(%tokens: memref<?xi32> {mica.role = "tokens"}) attributes {mica.max_rows = 16 : i64} {
      return
    }
    func.func @main_large(%tokens: memref<?xi32> {mica.role = "tokens"}) {
      return
    }
    ```
    becomes
    ```mlir
    func.func private @main_small(...) attributes {llvm.linkage = #llvm.linkage<internal>, mica.max_rows = 16 : i64} {
    ...
    func.func private @main_large(...) attributes {llvm.linkage = #llvm.linkage<internal>} {
    ...
    func.func @mica_forward(%descriptors: !llvm.ptr, %role: i64) {
    %place = llvm.getelementptr %descriptors[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    ...
    %tokens = builtin.unrealized_conversion_cast ... to memref<?xi32>
    %rows = memref.dim %tokens, ... : memref<?xi32>
    %small = arith.cmpi sle, %rows, %c16 : index
    scf.if %small {
    func.call @main_small(%tokens) : (memref<?xi32>) -> ()
    } else {
    func.call @main_large(%tokens) : (memref<?xi32>) -> ()
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def LowerTilesPass : Pass<"cpu-lower-tiles", "::mlir::ModuleOp"> {
  let summary = "lower AMX tiles, and the branches that carry them, to the LLVM dialect";
  let description = [{
    `amx` ops become calls of LLVM intrinsics, for which LLVM allocates and configures tile registers; branches of `cf`
    become those of the LLVM dialect, whose blocks may have tiles as arguments. A module without tiles is not changed.

    ```mlir
    func.func @sum(%x: memref<16x32xbf16>, %w: memref<16x32xbf16>, %more: i1, %y: memref<16x16xf32>) {
      %c0 = arith.constant 0 : index
      %zero = amx.tile_zero : !amx.tile<16x16xf32>
      %a = amx.tile_load %x[%c0, %c0] : memref<16x32xbf16> into !amx.tile<16x32xbf16>
      %b = amx.tile_load %w[%c0, %c0] : memref<16x32xbf16> into !amx.tile<16x32xbf16>
      cf.br ^loop(%zero : !amx.tile<16x16xf32>)
    ^loop(%sum: !amx.tile<16x16xf32>):
      %next = amx.tile_mulf %a, %b, %sum : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
      cf.cond_br %more, ^loop(%next : !amx.tile<16x16xf32>), ^end
    ^end:
      amx.tile_store %y[%c0, %c0], %next : memref<16x16xf32>, !amx.tile<16x16xf32>
      return
    }
    ```
    becomes
    ```mlir
    func.func @sum(%x: memref<16x32xbf16>, %w: memref<16x32xbf16>, %more: i1, %y: memref<16x16xf32>) {
    ...
    %zero = llvm.call_intrinsic "llvm.x86.tilezero.internal"(...) : (i16, i16) -> !llvm.x86_amx
    ...
    %a = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"(...) : (i16, i16, !llvm.ptr, i64) -> !llvm.x86_amx
    ...
    %b = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"(...) : (i16, i16, !llvm.ptr, i64) -> !llvm.x86_amx
    llvm.br ^bb1(%zero : !llvm.x86_amx)
    ^bb1(%sum: !llvm.x86_amx):...
    ...
    %next = llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"(..., %sum, %a, %b) : (...) -> !llvm.x86_amx
    llvm.cond_br %more, ^bb1(%next : !llvm.x86_amx), ^bb2
    ...
    llvm.call_intrinsic "llvm.x86.tilestored64.internal"(..., %next) : (...) -> ()
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def LowerExecPass : Pass<"cpu-lower-exec", "::mlir::ModuleOp"> {
  let summary = "lower launches, matmuls and probes to runtime calls";
  let description = [{
    A kernel (a function that `exec.launch` refers to) becomes an `llvm.func` that takes only the pointer and the
    dynamic sizes of each memref, with `llvm.noalias` if the argument has it, and a `.task` function that reads these
    arguments from a context in memory. A function has one context on its stack, because its launches are sequential.

    The runtime is called through a table of its functions (`backends/runtime/abi/RuntimeTable.h`): `exec.launch` calls
    `parallelFor`, `exec.matmul` calls `matmul`, `exec.probe` calls `probe`. The table becomes the last argument of
    `mica_forward`, of functions that call the runtime and of those that call such functions; kernels must not call it.
    `mica_runtime_bytes` is the size of the table that the code requires.

    Three more tables, `mica_kernel_tasks`, `mica_kernel_names` and `mica_kernel_costs`, describe each task function:
    its kernel, the location of the number of rows in its context, and its `exec.cost`. Programs can therefore be
    profiled without generating different code.

    ```mlir
    func.func private @scale(%begin: index, %end: index, %x: memref<?x64xf32>, %y: memref<?x64xf32>) {
      return
    }
    func.func @main(%rows: index, %x: memref<?x64xf32>, %y: memref<?x64xf32>) {
      exec.launch @scale tasks(%rows) ins(%x : memref<?x64xf32>) outs(%y : memref<?x64xf32>)
      return
    }
    ```
    becomes
    ```mlir
    llvm.func internal @scale(%begin: i64, %end: i64, %x: !llvm.ptr, %xrows: i64, %y: !llvm.ptr, %yrows: i64) {
    ...
    llvm.func internal @scale.task(%context: !llvm.ptr, %first: i64, %last: i64) {
    ...
    llvm.call @scale(%first, %last, ...) : (i64, i64, !llvm.ptr, i64, !llvm.ptr, i64) -> ()
    ...
    func.func @main(..., %table: !llvm.ptr) {
    ...
    %place = llvm.alloca ...
    %task = llvm.mlir.addressof @scale.task : !llvm.ptr
    %slot = llvm.getelementptr %table[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %parallelFor = llvm.load %slot : !llvm.ptr -> !llvm.ptr
    ...
    %runtime = llvm.load ... : !llvm.ptr -> !llvm.ptr
    llvm.call %parallelFor(%runtime, %task, %place, ...) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::func::FuncDialect"];
}

def ExpandMathPass : Pass<"cpu-expand-math"> {
  let summary = "expand exp, tanh, sin, ... into polynomials";
  let description = [{
    Replaces functions that would become calls of libm by polynomials on scalars and vectors of f32, and `rsqrt` by a
    square root and a division. Fails with the name of the op if one is left that has no instruction.

    ```mlir
    func.func @inverse_root(%x: vector<16xf32>) -> vector<16xf32> {
      %y = math.rsqrt %x : vector<16xf32>
      return %y : vector<16xf32>
    }
    ```
    becomes
    ```mlir
    func.func @inverse_root(%x: vector<16xf32>) -> vector<16xf32> {
      %one = arith.constant dense<1.0> : vector<16xf32>
      %r = math.sqrt %x : vector<16xf32>
      %y = arith.divf %one, %r : vector<16xf32>
      return %y : vector<16xf32>
    }
    ```
    Sine and cosine reduce their argument by three parts of pi/2 with fused multiply-adds, because RoPE angles reach
    thousands; up to 2^17 their error is below 2^-22.
  }];
  let dependentDialects = ["::mlir::math::MathDialect", "::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect"];
}

def ExpandBf16Pass : Pass<"cpu-expand-bf16"> {
  let summary = "expand conversions between f32 and bf16 into integer instructions";
  let description = [{
    Only for a `cpu.target` without `bf16_dot`, for which LLVM would call a function per element. Rounds to nearest
    even and preserves NaN.

    ```mlir
    func.func @widen(%x: vector<16xbf16>) -> vector<16xf32> {
      %y = arith.extf %x : vector<16xbf16> to vector<16xf32>
      return %y : vector<16xf32>
    }
    ```
    becomes
    ```mlir
    func.func @widen(%x: vector<16xbf16>) -> vector<16xf32> {
      %c16 = arith.constant dense<16> : vector<16xi32>
      %bits = arith.bitcast %x : vector<16xbf16> to vector<16xi16>
      %wide = arith.extui %bits : vector<16xi16> to vector<16xi32>
      %high = arith.shli %wide, %c16 : vector<16xi32>
      %y = arith.bitcast %high : vector<16xi32> to vector<16xf32>
      return %y : vector<16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect"];
}

def Bf16AsIntegersPass : Pass<"cpu-bf16-as-integers", "::mlir::ModuleOp"> {
  let summary = "replace the type bf16 by i16";
  let description = [{
    Runs in the LLVM dialect after `cpu-expand-bf16`, for the same targets. At that point bf16 values are only moved,
    but LLVM would convert the elements of a masked store to f32 and round them back with a function call. Fails with
    the name of the op if something still computes in bf16.

    ```mlir
    llvm.func @copy(%from: !llvm.ptr, %to: !llvm.ptr) {
      %v = llvm.load %from : !llvm.ptr -> vector<16xbf16>
      llvm.store %v, %to : vector<16xbf16>, !llvm.ptr
      llvm.return
    }
    ```
    becomes
    ```mlir
    llvm.func @copy(%from: !llvm.ptr, %to: !llvm.ptr) {
      %v = llvm.load %from : !llvm.ptr -> vector<16xi16>
      llvm.store %v, %to : vector<16xi16>, !llvm.ptr
      llvm.return
    }
    ```
  }];
}

def HoistAllocasPass : Pass<"cpu-hoist-allocas"> {
  let summary = "move stack buffers to their function's entry";
  let description = [{
    A `memref.alloca` in a loop would allocate stack memory in every iteration. Fails with the name of the op if its
    size is not constant, and on any `memref.alloc`, because memory has been planned before this stage. The limit is
    2 MiB per function; programs ensure this stack size when they start.

    ```mlir
    func.func @kernel(%n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %n step %c1 {
        %sums = memref.alloca() : memref<16xf32>
      }
      return
    }
    ```
    becomes
    ```mlir
    func.func @kernel(%n: index) {
      %sums = memref.alloca() : memref<16xf32>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %n step %c1 {
      }
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def CheckLlvmPass : Pass<"cpu-check-llvm", "::mlir::ModuleOp"> {
  let summary = "check that only the LLVM dialect is left and only the runtime is called";
  let description = [{
    Fails with the name and location of the op on ops of other dialects, on calls of functions that a program does not
    have or of pointers that are not loaded from a slot of the runtime table, and on intrinsics that LLVM turns into
    calls.

    ```mlir
    llvm.func @f(%x: f32) -> f32 {
      // expected-error @+1 {{would become a call of libm}}
      %y = llvm.intr.exp(%x) : (f32) -> f32
      llvm.return %y : f32
    }
    ```
  }];
}

#endif // MICA_BACKENDS_CPU_CODEGEN_PASSES
