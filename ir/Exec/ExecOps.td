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
  let summary = "Launches of generated kernels, oneDNN matmuls and exchanges between ranks, "
                # "in destination-passing style";
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

/// An op that becomes a call of the runtime, which kernels must not contain.
def Exec_CallsRuntime : NativeOpTrait<"CallsRuntime"> {
  let cppNamespace = "::mica::exec";
}

def Exec_LaunchOp : Exec_Op<"launch", [Exec_CallsRuntime, AttrSizedOperandSegments, DestinationStyleOpInterface,
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

def Exec_MatmulOp : Exec_Op<"matmul", [Exec_CallsRuntime, DestinationStyleOpInterface,
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

def Exec_ProbeOp : Exec_Op<"probe", [Exec_CallsRuntime, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
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

/// An op of a model that several ranks run, which all of them run at the same place: it writes `output`.
class Exec_RankOp<string mnemonic> : Exec_Op<mnemonic, [Exec_CallsRuntime, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let results = (outs Optional<AnyRankedTensor>:$result);
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
  }];
  let hasVerifier = 1;
}

def Exec_AllGatherOp : Exec_RankOp<"all_gather"> {
  let summary = "the columns of all ranks";
  let description = [{
    See `mica.all_gather`: `output[..., r n + i] = x_r[..., i]`, where `x_r` is the x of rank r and n the size of its
    last axis; columns beyond those of the output are padding.

    Example:
    ```mlir
    func.func @all_gather(%x: memref<?x32xf32>, %y: memref<?x64xf32>) {
      exec.all_gather ins(%x : memref<?x32xf32>) outs(%y : memref<?x64xf32>)
      return
    }
    ```
  }];
  let arguments = (ins AnyShaped:$x, AnyShaped:$output);
  let assemblyFormat = "`ins` `(` $x `:` type($x) `)` `outs` `(` $output `:` type($output) `)` attr-dict "
                       # "(`->` type($result)^)?";
}

def Exec_AllSliceOp : Exec_RankOp<"all_slice"> {
  let summary = "a rank's columns of rows that all ranks have";
  let description = [{
    See `mica.all_slice`: `output[..., i] = x[..., r n + i]` on rank r, where n is the size of the last axis of the
    output; zero beyond the columns of x.

    Example:
    ```mlir
    func.func @all_slice(%x: memref<?x64xf32>, %y: memref<?x32xf32>) {
      exec.all_slice ins(%x : memref<?x64xf32>) outs(%y : memref<?x32xf32>)
      return
    }
    ```
  }];
  let arguments = (ins AnyShaped:$x, AnyShaped:$output);
  let assemblyFormat = "`ins` `(` $x `:` type($x) `)` `outs` `(` $output `:` type($output) `)` attr-dict "
                       # "(`->` type($result)^)?";
}

def Exec_LocalRowsOp : Exec_RankOp<"local_rows"> {
  let summary = "indices of rows of a distributed table as indices of the rank's own part";
  let description = [{
    `output[t] = x[t] - r n` on rank r, which has n rows of the table, if that is the index of one of them, else 0: a
    rank can gather a row for each index, and `exec.share_rows` replaces those of other ranks.

    Example:
    ```mlir
    func.func @local_rows(%tokens: memref<?xi32>, %local: memref<?xi32>) {
      exec.local_rows n(256) ins(%tokens : memref<?xi32>) outs(%local : memref<?xi32>)
      return
    }
    ```
  }];
  let arguments = (ins AnyShaped:$x, AnyShaped:$output, I64Attr:$n);
  let assemblyFormat = "`n` `(` $n `)` `ins` `(` $x `:` type($x) `)` `outs` `(` $output `:` type($output) `)` "
                       # "attr-dict (`->` type($result)^)?";
}

def Exec_ShareRowsOp : Exec_RankOp<"share_rows"> {
  let summary = "rows that one rank each has";
  let description = [{
    `output[t] = output_r[t]`, where `output_r` is the output of rank r = x[t] / n: the rank that has row x[t] of a
    table of which each rank has n rows.

    Example:
    ```mlir
    func.func @share_rows(%tokens: memref<?xi32>, %rows: memref<?x64xf32>) {
      exec.share_rows n(256) ins(%tokens : memref<?xi32>) outs(%rows : memref<?x64xf32>)
      return
    }
    ```
  }];
  let arguments = (ins AnyShaped:$x, AnyShaped:$output, I64Attr:$n);
  let assemblyFormat = "`n` `(` $n `)` `ins` `(` $x `:` type($x) `)` `outs` `(` $output `:` type($output) `)` "
                       # "attr-dict (`->` type($result)^)?";
}

#endif // MICA_EXEC_OPS
