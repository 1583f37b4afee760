// The `exec` dialect: a model as launches of kernels, before and after bufferization.

#ifndef MICA_EXEC_OPS
#define MICA_EXEC_OPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::mica::exec";
  let summary = "Launches of generated kernels and oneDNN matmuls, in destination-passing style";
  let description = [{
    On tensors, each op returns the new value of its destinations; bufferization turns that into writes in place.
    The bodies of the kernels are functions on memrefs in the same module, consisting of vector, scf and memref ops. The
    attribute `exec.kernel` of a kernel is its specification; `exec.cost` is the cost of a launch, from which `bench
    --profile` computes rates.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

def Exec_KernelAttr : AttrDef<Exec_Dialect, "Kernel"> {
  let mnemonic = "kernel";
  let summary = "the specification of a generated kernel";
  let description = [{
    `exec.kernel` marks a function as a kernel and identifies it: what it computes, and everything else that its body
    depends on besides the types of its arguments and the target, as attributes in a kernel-specific order. Launches
    with the same specification share a kernel; functions whose names had to be made unique (`linear_172x64_0`) differ
    in their specification or in their types.

    Example:
    ```mlir
    func.func private @rmsnorm(%begin: index, %end: index, %x: memref<?x64xf32>, %w: memref<64xf32>,
        %y: memref<?x64xf32>) attributes {exec.kernel = #exec.kernel<"rmsnorm", [1.0e-05, 0.0, true, 0]>}
    ```
  }];
  let parameters = (ins StringRefParameter<"what it computes">:$base,
                        AttrParameter<"::mlir::ArrayAttr", "what else its body depends on">:$parameters);
  let assemblyFormat = "`<` $base `,` $parameters `>`";
  let genVerifyDecl = 1;
}

class Exec_Count<string summary> : DefaultValuedParameter<"int64_t", "0", summary>;

def Exec_CostAttr : AttrDef<Exec_Dialect, "Cost"> {
  let mnemonic = "cost";
  let summary = "the memory traffic and FLOPs of one kernel launch";
  let description = [{
    At run time, each count is multiplied by the number of rows of the launch, of positions that these rows attend to
    (counted once per sequence), or of pairs of a row and a position that it attends to. With `window`, a row attends to
    at most that many positions. The number of `experts` that are read is `row_experts` per row, at most all.

    Example:
    ```mlir
    func.func private @linear_172x64(%begin: index, %end: index, %x: memref<?x64xf32>, %w: memref<3x64x64x1xf32>,
        %y: memref<?x172xf32>) attributes {exec.cost = #exec.cost<weight_bytes = 49152, row_flops = 22016>}
    ```
  }];
  let parameters = (ins
    Exec_Count<"bytes of weights read completely">:$weight_bytes,
    Exec_Count<"bytes of weights read per row">:$row_weight_bytes,
    Exec_Count<"bytes of one expert">:$expert_bytes,
    Exec_Count<"number of experts">:$experts,
    Exec_Count<"experts selected per row">:$row_experts,
    Exec_Count<"bytes of caches written per row">:$row_cache_bytes,
    Exec_Count<"bytes of caches read per position">:$position_cache_bytes,
    Exec_Count<"multiplications and additions per row">:$row_flops,
    Exec_Count<"multiplications and additions per row and position">:$pair_flops,
    Exec_Count<"maximum number of positions that a row attends to; 0: all">:$window);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

def Exec_LaunchOp : Exec_Op<"launch", [AttrSizedOperandSegments, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a generated kernel over a range of tasks";
  let description = [{
    Runs `kernel(begin, end, inputs..., outputs...)` for parts of [0, tasks) on the thread pool. Tasks are independent:
    results must not depend on how they are split. A single task runs on the calling thread.

    Example:
    ```mlir
    func.func private @scale(%begin: index, %end: index, %x: memref<?x64xf32>, %y: memref<?x64xf32>) {
      return
    }
    func.func @launch(%rows: index, %x: memref<?x64xf32>, %y: memref<?x64xf32>) {
      exec.launch @scale tasks(%rows) ins(%x : memref<?x64xf32>) outs(%y : memref<?x64xf32>)
      return
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Index:$tasks, Variadic<AnyType>:$inputs,
                       Variadic<AnyShaped>:$outputs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $kernel `tasks` `(` $tasks `)` (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    `outs` `(` $outputs `:` type($outputs) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputsMutable(); }
  }];
}

def Exec_MatmulOp : Exec_Op<"matmul", [DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a oneDNN matmul with a packed weight";
  let description = [{
    `output = x W^T`, or `output += x W^T` with `accumulate`. x is [T, K] of f32 or bf16, the weight is packed as [N /
    64][K / depth][64][depth] (see `#mica.packed`), the output [T, N] of f32. `k` and `n` are the unpadded extents.

    Example:
    ```mlir
    func.func @matmul(%x: memref<?x64xf32>, %w: memref<3x64x64x1xf32>, %y: memref<?x172xf32>) {
      exec.matmul accumulate k(64) n(172) ins(%x, %w : memref<?x64xf32>, memref<3x64x64x1xf32>)
          outs(%y : memref<?x172xf32>)
      return
    }
    ```
  }];
  let arguments = (ins AnyShaped:$x, AnyShaped:$weight, AnyShaped:$output, UnitAttr:$accumulate,
                       I64Attr:$k, I64Attr:$n);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    (`accumulate` $accumulate^)? `k` `(` $k `)` `n` `(` $n `)`
    `ins` `(` $x `,` $weight `:` type($x) `,` type($weight) `)`
    `outs` `(` $output `:` type($output) `)` attr-dict (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
  }];
  let hasVerifier = 1;
}

def Exec_ProbeOp : Exec_Op<"probe", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "records rows for debugging";
  let description = [{
    Passes the rows of x [T, ...], of f32, bf16 or i32, to the runtime, with the probe's name and its layer index, or -1
    outside of layers. The runtime records them if `score --probes` is given.

    Example:
    ```mlir
    func.func @probe(%x: memref<?x64xf32>, %layer: index) {
      exec.probe "linear o_proj" layer(%layer) ins(%x : memref<?x64xf32>)
      return
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Index:$layer, AnyShaped:$x);
  let assemblyFormat = "$name `layer` `(` $layer `)` `ins` `(` $x `:` type($x) `)` attr-dict";
}

#endif // MICA_EXEC_OPS
