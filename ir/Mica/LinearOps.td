// Matmuls with weights.

def Mica_EmbeddingOp : Mica_PureOp<"embedding", [Mica_GathersRows]> {
  let summary = "one row of a table per token";
  let description = [{
    `y[t] = table[tokens[t]]`.

    Example:
    ```mlir
    func.func @embedding(%tokens: tensor<?xi32>, %table: tensor<512x64xf32>) {
      %x = mica.embedding %tokens, %table : tensor<?xi32>, tensor<512x64xf32> -> tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_RowIndex:$tokens, Mica_Matrix:$table);
  let results = (outs Mica_Rows32:$result);
  let assemblyFormat = "$tokens `,` $table attr-dict `:` type($tokens) `,` type($table) `->` type($result)";
  let extraClassDeclaration = [{
    /// The role of `tokens` depends on the table, which has a row for each token or for each position.
    ::llvm::SmallVector<::mica::StepOperand> getStepRoles() { return {}; }
    ::std::optional<::mica::StepRole> getResultRole() { return StepRows::OfTokens; }
  }];
  let hasVerifier = 1;
}

def Mica_LinearOp : Mica_PureOp<"linear", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Mica_MultipliesRows, ["getBiases"]>, Mica_SelectsKernel, Mica_AddsResidual]> {
  let summary = "matmul with a weight matrix";
  let description = [{
    `y = x W^T + bias + residual` with W of shape [N, K], accumulated in f32. `residual` is set by fusion; `kernel` is
    selected at stage `kernels`.

    Example:
    ```mlir
    func.func @linear(%x: tensor<?x64xf32>, %w: tensor<172x64xf32>, %v: tensor<64x64xf32>,
        %b: tensor<64xf32>) {
      %y = mica.linear %x, %w : tensor<?x64xf32>, tensor<172x64xf32> -> tensor<?x172xf32>
      %z = mica.linear %x, %v bias(%b : tensor<64xf32>) residual(%x : tensor<?x64xf32>)
          : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows:$x, Mica_Matrix:$weight, Optional<Mica_Vector>:$bias, Optional<Mica_Rows32>:$residual,
                       OptionalAttr<Mica_KernelKindAttr>:$kernel);
  let results = (outs Mica_Rows32:$result);
  let assemblyFormat = [{
    $x `,` $weight (`bias` `(` $bias^ `:` type($bias) `)`)? (`residual` `(` $residual^ `:` type($residual) `)`)?
    (`kernel` `(` custom<Word>($kernel)^ `)`)? attr-dict `:` type($x) `,` type($weight) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Mica_HeadLinearOp : Mica_PureOp<"head_linear", [Mica_MultipliesRows, Mica_RoundsResult]> {
  let summary = "matmul with a weight matrix per head";
  let description = [{
    `y[t, h] = x[t, h] W[h]^T` with W of shape [H, N, K], accumulated in f32. Latent attention (MLA) multiplies queries
    and outputs by the heads' up-projections with this op, instead of expanding keys and values of every cached position
    (see `mica-absorb-latent`). Rows of `!mica.int_rows` have a scale for each group of a head.

    Example:
    ```mlir
    func.func @head_linear(%x: tensor<?x8x16xf32>, %w: tensor<8x64x16xf32>) {
      %y = mica.head_linear %x, %w : tensor<?x8x16xf32>, tensor<8x64x16xf32> -> tensor<?x8x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_HeadRows:$x, Mica_Matrices:$weight);
  let results = (outs Mica_Heads:$result);
  let assemblyFormat = "$x `,` $weight attr-dict `:` type($x) `,` type($weight) `->` type($result)";
  let hasVerifier = 1;
}

def Mica_LmHeadOp : Mica_PureOp<"lm_head", [Mica_MultipliesRows, Mica_SelectsKernel, Mica_ComputesLogits]> {
  let summary = "logits of the next token";
  let description = [{
    `logits = x W^T` with W of shape [vocabulary, C]: the last matmul of the model. It is a separate op because its
    result is the output of the model and its weight is often tied to the embedding.

    Example:
    ```mlir
    func.func @lm_head(%x: tensor<?x64xf32>, %w: tensor<512x64xf32>) {
      %logits = mica.lm_head %x, %w : tensor<?x64xf32>, tensor<512x64xf32> -> tensor<?x512xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows:$x, Mica_Matrix:$weight, OptionalAttr<Mica_KernelKindAttr>:$kernel);
  let results = (outs Mica_Rows32:$result);
  let assemblyFormat = [{
    $x `,` $weight (`kernel` `(` custom<Word>($kernel)^ `)`)? attr-dict
    `:` type($x) `,` type($weight) `->` type($result)
  }];
  let hasVerifier = 1;
}
