// Models partitioned for several ranks: the ops in which ranks communicate.

def Mica_AllGatherOp : Mica_PureOp<"all_gather"> {
  let summary = "the columns of all ranks";
  let description = [{
    `y[..., r n + i] = x_r[..., i]`, where `x_r` is the x of rank r and n is the size of its last axis: each rank has
    computed some columns of rows [T, C] or of heads [T, H, D], and receives all of them. If the result has fewer than
    `ranks * n` columns, the rest is padding, see `shard` of `mica.weight`. Nothing is computed: the result is
    bit-identical to that of a single rank.

    Ranks run the same code on parts of the same weights. Their number is `mica.ranks` of the module, and ops in which
    ranks communicate repeat it. `mica-shard` adds them.

    Example:
    ```mlir
    module attributes {mica.ranks = 2 : i64} {
      func.func @all_gather(%x: tensor<?x32xf32>) {
        %y = mica.all_gather %x ranks(2) : tensor<?x32xf32> -> tensor<?x64xf32>
        return
      }
    }
    ```
  }];
  let arguments = (ins Mica_Gathered:$x, I64Attr:$ranks);
  let results = (outs Mica_Gathered:$result);
  let assemblyFormat = "$x `ranks` `(` $ranks `)` attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Mica_AllSliceOp : Mica_PureOp<"all_slice"> {
  let summary = "a rank's columns of rows that all ranks have";
  let description = [{
    `y[..., i] = x[..., r n + i]` on rank r, where n is the size of the last axis of y; zero beyond the columns of x. It
    is the inverse of `mica.all_gather`, but nothing is exchanged: a rank adds its columns of the residual stream to
    those of a matmul.

    Example:
    ```mlir
    module attributes {mica.ranks = 2 : i64} {
      func.func @all_slice(%x: tensor<?x64xf32>) {
        %y = mica.all_slice %x ranks(2) : tensor<?x64xf32> -> tensor<?x32xf32>
        return
      }
    }
    ```
  }];
  let arguments = (ins Mica_Gathered:$x, I64Attr:$ranks);
  let results = (outs Mica_Gathered:$result);
  let assemblyFormat = "$x `ranks` `(` $ranks `)` attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Mica_ShardedEmbeddingOp : Mica_PureOp<"sharded_embedding", [Mica_GathersRows]> {
  let summary = "one row per token of a table whose rows are distributed over ranks";
  let description = [{
    `y[t] = table_r[tokens[t] - r n]`, where n is the number of rows of the part `table_r` that rank r has, and
    r = tokens[t] / n: the rank that has the row of a token sends it to all others. `rows` is the number of rows of
    the whole table. A table that is also the matrix of `mica.lm_head` is partitioned in the same way, by rows, so it
    is stored once.

    Example:
    ```mlir
    module attributes {mica.ranks = 2 : i64} {
      func.func @sharded_embedding(%tokens: tensor<?xi32>, %table: tensor<256x64xf32>) {
        %x = mica.sharded_embedding %tokens, %table rows(512) ranks(2)
            : tensor<?xi32>, tensor<256x64xf32> -> tensor<?x64xf32>
        return
      }
    }
    ```
  }];
  let arguments = (ins Mica_RowIndex:$tokens, Mica_Matrix:$table, I64Attr:$rows, I64Attr:$ranks);
  let results = (outs Mica_Rows32:$result);
  let assemblyFormat = [{
    $tokens `,` $table `rows` `(` $rows `)` `ranks` `(` $ranks `)` attr-dict
    `:` type($tokens) `,` type($table) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// The role of `tokens` depends on the table, which has a row for each token or for each position.
    ::llvm::SmallVector<::mica::StepOperand> getStepRoles() { return {}; }
    ::std::optional<::mica::StepRole> getResultRole() { return StepRows::OfTokens; }
    int64_t getTableRows() { return static_cast<int64_t>(getRows()); }
  }];
  let hasVerifier = 1;
}
