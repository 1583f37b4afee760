// The `mica` dialect: language models at the level at which people talk about them.

#ifndef MICA_DIALECT
#define MICA_DIALECT

include "mlir/IR/OpBase.td"

def Mica_Dialect : Dialect {
  let name = "mica";
  let cppNamespace = "::mica";
  let summary = "Decoder language models: norms, rope, attention, gates, weights and caches";
  let description = [{
    A model is a module with one `mica.weight` symbol per tensor of the checkpoint, one function per layer type and
    a function `@main` that calls them. Activations are `tensor<?xCxf32>`: one row per token. A row belongs to the
    sequence `sequences[row]` and is at the position `positions[row]` of it, so that prompts of different lengths
    share a batch without padding, and prefill and decode are the same function.

    Weights are symbols: their bytes never enter the IR. A key/value cache is a value: an append consumes it and
    yields the next one.

    Every argument and result of an entry function, that is a public one, has a role, `mica.role`, by which everybody
    finds it; their order is free, only caches are returned in the order in which they were taken:

    | role | of | what it is |
    |---|---|---|
    | `tokens`, `sequences`, `positions` | arguments `tensor<?xi32>` | of each row |
    | `logit_indices` | an argument `tensor<?xi32>` | the rows whose logits are computed |
    | `lengths` | an argument `tensor<?xi32>` | of each row, for how many positions its sequence is read |
    | `cache` | arguments and results `!mica.kv_cache`, `!mica.rolling_state`, `!mica.recurrent_state` | what a program keeps between calls |
    | `logits` | a result `tensor<?xVxf32>` | of each output |
    | `weights`, `scratch`, `logits` | arguments from stage `loops` on | memory that a program provides |

    Names of earlier versions are refused with their replacement; see [ir-changes.md](ir-changes.md).
  }];
  let extraClassDeclaration = [{
    /// Refuses ops of earlier versions by the names that they have now.
    std::optional<ParseOpHook> getParseOperationHook(::llvm::StringRef name) const override;
    /// Refuses types of earlier versions as well.
    ::mlir::Type parseType(::mlir::DialectAsmParser &parser) const override;
    void printType(::mlir::Type type, ::mlir::DialectAsmPrinter &printer) const override;
  }];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

#endif // MICA_DIALECT
