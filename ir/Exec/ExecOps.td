// The `exec` dialect: what a model becomes when every op has its kernel, before and after bufferisation.

#ifndef MICA_EXEC_OPS
#define MICA_EXEC_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::mica::exec";
  let summary = "Launches of generated kernels and products by oneDNN, in destination-passing style";
  let description = [{
    On tensors, each op returns the new value of its destinations; bufferisation turns that into writes in place. The
    bodies of the kernels are functions on memrefs beside it, made of vector, scf and memref ops.
  }];
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

def Exec_LaunchOp : Exec_Op<"launch", [AttrSizedOperandSegments, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a generated kernel over a range of tasks";
  let description = [{
    Runs `kernel(begin, end, inputs..., outputs...)` for parts of [0, tasks) on the pool. Tasks are independent: how
    they are cut must not change any result. One task runs on the calling thread.

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
  let summary = "a product by oneDNN with a packed weight";
  let description = [{
    `output = x W^T`, or `output += x W^T` with `accumulate`. x is [T, K] of f32 or bf16, the weight is packed as [N /
    64][K / depth][64][depth] (see `#mica.packed`), the output [T, N] of f32. `k` and `n` are the unpadded extents.
    Where the weight are bytes, the blocks of a matrix of `!mica.int8`, the rows of x are unsigned bytes, at least K of
    them, and the output is their product in i32, which is not accumulated.

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

#endif // MICA_EXEC_OPS
