// The `mica` dialect: language models at the level of model descriptions.

#ifndef MICA_DIALECT
#define MICA_DIALECT

include "mlir/IR/OpBase.td"

def Mica_Dialect : Dialect {
  let name = "mica";
  let cppNamespace = "::mica";
  let summary = "Decoder language models: norms, rope, attention, gates, weights and caches";
  let description = [{
    A model is a module with one `mica.weight` symbol per tensor of the checkpoint, one function per layer type and
    a function `@main` that calls them. Activations are `tensor<?xCxf32>`: one row per token. A row belongs to
    sequence `sequences[row]` at position `positions[row]`, so prompts of different lengths share a batch without
    padding, and prefill and decode are the same function.

    Weights are symbols: the IR never contains their data. A key/value cache is a value: an append consumes it and
    returns the next one.

    Every argument and result of an entry function (a public function) is identified by its role, `mica.role`. Their
    order is free, except that caches are returned in the order of the arguments:

    | role | kind | meaning |
    |---|---|---|
    | `tokens`, `sequences`, `positions` | arguments `tensor<?xi32>` | token, sequence and position of each row |
    | `logit_indices` | an argument `tensor<?xi32>` | the rows whose logits are computed |
    | `lengths` | an argument `tensor<?xi32>` | for each row, the total length of its sequence |
    | `cache` | arguments, results `!mica.kv_cache`, `!mica.rolling_state`, `!mica.recurrent_state` | sequence state |
    | `hidden` | an argument and a result `tensor<?xCxf32>` | rows of multi-token prediction; results replace them |
    | `logits` | a result `tensor<?xVxf32>` | the logits of each row in `logit_indices` |
    | `weights`, `scratch`, `logits` | arguments from stage `loops` on | memory that a program provides |

    A model may be partitioned for several ranks, processes that run the same code on parts of the weights: `mica.ranks
    = 2 : i64` of the module is their number (at most 4096), weights have a `shard`, and `mica.all_gather` and
    `mica.sharded_embedding` exchange rows. The inputs and the logits of all ranks are the same.

    Names of earlier versions are rejected with their replacement; see [ir-changes.md](ir-changes.md).
  }];
  let extraClassDeclaration = [{
    /// Rejects names of ops of earlier versions with an error that states the new name.
    std::optional<ParseOpHook> getParseOperationHook(::llvm::StringRef name) const override;
    /// Also rejects types of earlier versions.
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
