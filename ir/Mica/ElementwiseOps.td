// Elementwise arithmetic, activations, rounding and reshapes.

class Mica_UnaryOp<string mnemonic, list<Trait> traits = []>
    : Mica_PureOp<mnemonic, !listconcat(traits, [SameOperandsAndResultType])> {
  let arguments = (ins Mica_RowsOrHeads:$x);
  let results = (outs Mica_RowsOrHeads:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

class Mica_ActivationOp<string mnemonic, string function> : Mica_UnaryOp<mnemonic, [Mica_AppliesActivation]> {
  let extraClassDeclaration = [{
    static constexpr Activation getActivation() { return Activation::}] # function # [{; }
  }];
}

class Mica_BinaryOp<string mnemonic> : Mica_PureOp<mnemonic, [SameOperandsAndResultType, Commutative]> {
  let arguments = (ins Mica_RowsOrHeads:$lhs, Mica_RowsOrHeads:$rhs);
  let results = (outs Mica_RowsOrHeads:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs)";
}

def Mica_AddOp : Mica_BinaryOp<"add"> {
  let summary = "elementwise sum";
  let description = [{
    `y = lhs + rhs`.

    Example:
    ```mlir
    func.func @add(%a: tensor<?x64xf32>, %b: tensor<?x64xf32>) {
      %y = mica.add %a, %b : tensor<?x64xf32>
      return
    }
    ```
  }];
}

def Mica_MulOp : Mica_BinaryOp<"mul"> {
  let summary = "elementwise product";
  let description = [{
    `y = lhs * rhs`.

    Example:
    ```mlir
    func.func @mul(%a: tensor<?x64xf32>, %b: tensor<?x64xf32>) {
      %y = mica.mul %a, %b : tensor<?x64xf32>
      return
    }
    ```
  }];
}

def Mica_SiluOp : Mica_ActivationOp<"silu", "Silu"> {
  let summary = "SiLU: x times its logistic function";
  let description = [{
    `y = x / (1 + exp(-x))`.

    Example:
    ```mlir
    func.func @silu(%x: tensor<?x64xf32>) {
      %y = mica.silu %x : tensor<?x64xf32>
      return
    }
    ```
  }];
}

def Mica_GeluOp : Mica_ActivationOp<"gelu", "Gelu"> {
  let summary = "the Gaussian error linear unit";
  let description = [{
    `y = x / 2 (1 + erf(x / sqrt 2))`.

    Example:
    ```mlir
    func.func @gelu(%x: tensor<?x64xf32>) {
      %y = mica.gelu %x : tensor<?x64xf32>
      return
    }
    ```
  }];
}

def Mica_GeluTanhOp : Mica_ActivationOp<"gelu_tanh", "GeluTanh"> {
  let summary = "the tanh approximation of gelu";
  let description = [{
    `y = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.

    Example:
    ```mlir
    func.func @gelu_tanh(%x: tensor<?x64xf32>) {
      %y = mica.gelu_tanh %x : tensor<?x64xf32>
      return
    }
    ```
  }];
}

def Mica_ReluOp : Mica_ActivationOp<"relu", "Relu"> {
  let summary = "ReLU";
  let description = [{
    `y = max(x, 0)`.

    Example:
    ```mlir
    func.func @relu(%x: tensor<?x64xf32>) {
      %y = mica.relu %x : tensor<?x64xf32>
      return
    }
    ```
  }];
}

def Mica_Relu2Op : Mica_ActivationOp<"relu2", "Relu2"> {
  let summary = "squared ReLU";
  let description = [{
    `y = max(x, 0)^2`.

    Example:
    ```mlir
    func.func @relu2(%x: tensor<?x64xf32>) {
      %y = mica.relu2 %x : tensor<?x64xf32>
      return
    }
    ```
  }];
}

def Mica_QuickGeluOp : Mica_ActivationOp<"quick_gelu", "QuickGelu"> {
  let summary = "the sigmoid approximation of gelu";
  let description = [{
    `y = x / (1 + exp(-1.702 x))`.

    Example:
    ```mlir
    func.func @quick_gelu(%x: tensor<?x64xf32>) {
      %y = mica.quick_gelu %x : tensor<?x64xf32>
      return
    }
    ```
  }];
}

def Mica_SigmoidOp : Mica_UnaryOp<"sigmoid"> {
  let summary = "the logistic function";
  let description = [{
    `y = 1 / (1 + exp(-x))`. Used for the gate beta of the gated delta rule.

    Example:
    ```mlir
    func.func @sigmoid(%x: tensor<?x64xf32>) {
      %y = mica.sigmoid %x : tensor<?x64xf32>
      return
    }
    ```
  }];
}

def Mica_ScaleOp : Mica_PureOp<"scale", [SameOperandsAndResultType]> {
  let summary = "multiplication by a constant of the model";
  let description = [{
    `y = factor * x`, for families that scale their embeddings, the results of their blocks or their logits. Division by
    n is written as `by(1 / n)`.

    Example:
    ```mlir
    func.func @scale(%x: tensor<?x64xf32>) {
      %y = mica.scale %x by(12.0) : tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_RowsOrHeads:$x, F64Attr:$factor);
  let results = (outs Mica_RowsOrHeads:$result);
  let assemblyFormat = "$x `by` `(` $factor `)` attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Mica_ScalePartsOp : Mica_PureOp<"scale_parts", [AllTypesMatch<["x", "result"]>]> {
  let summary = "multiplication of the columns of rows by a constant of the model per part";
  let description = [{
    `y[t, c] = factors[i] x[t, c]` for the columns c of part i, where part i has `widths[i]` columns after those of the
    parts before it. Used for models that scale the inputs of a convolution (z, x, B, C, dt) separately.

    Example:
    ```mlir
    func.func @scale_parts(%x: tensor<?x64xf32>) {
      %y = mica.scale_parts %x by([0.25, 1.5]) widths([48, 16]) : tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows32:$x, DenseF64ArrayAttr:$factors, DenseI64ArrayAttr:$widths);
  let results = (outs Mica_Rows32:$result);
  let assemblyFormat = "$x `by` `(` $factors `)` `widths` `(` $widths `)` attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Mica_SoftcapOp : Mica_PureOp<"softcap", [SameOperandsAndResultType]> {
  let summary = "soft capping";
  let description = [{
    `y = cap tanh(x / cap)`: approximately x for small x, with a magnitude of at most `cap`. This op is for logits;
    `mica.attention` has an attribute for softcapping of its scores.

    Example:
    ```mlir
    func.func @softcap(%logits: tensor<?x64xf32>) {
      %y = mica.softcap %logits at(30.0) : tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_RowsOrHeads:$x, F64Attr:$cap);
  let results = (outs Mica_RowsOrHeads:$result);
  let assemblyFormat = "$x `at` `(` $cap `)` attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Mica_SigmoidGateOp : Mica_PureOp<"sigmoid_gate", [AllTypesMatch<["x", "result"]>]> {
  let summary = "rows multiplied by the sigmoid of a gate per row or per element";
  let description = [{
    `y[t, c] = x[t, c] / (1 + exp(-gate[t, 0]))`, or `x[t, c] / (1 + exp(-gate[t, c]))` if the gate has a number per
    element: the gate of a shared expert and the output gate of attention.

    Example:
    ```mlir
    func.func @sigmoid_gate(%x: tensor<?x64xf32>, %gate: tensor<?x1xf32>, %gates: tensor<?x64xf32>) {
      %y = mica.sigmoid_gate %x, %gate : tensor<?x64xf32>, tensor<?x1xf32>
      %z = mica.sigmoid_gate %x, %gates : tensor<?x64xf32>, tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows32:$x, Mica_Rows32:$gate);
  let results = (outs Mica_Rows32:$result);
  let assemblyFormat = "$x `,` $gate attr-dict `:` type($x) `,` type($gate)";
  let hasVerifier = 1;
}

def Mica_CastOp : Mica_PureOp<"cast", [SameOperandsAndResultShape, Mica_NotProbed]> {
  let summary = "a change of precision";
  let description = [{
    Rounds to nearest, ties to even, if the result is narrower. It marks where a value is passed to a matmul or a cache
    of lower precision; everything else stays in f32.

    Example:
    ```mlir
    func.func @cast(%x: tensor<?x64xf32>) {
      %y = mica.cast %x : tensor<?x64xf32> to tensor<?x64xbf16>
      return
    }
    ```
  }];
  let arguments = (ins Mica_RowsOrHeads:$x);
  let results = (outs Mica_RowsOrHeads:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `to` type($result)";
  let hasFolder = 1;
}

def Mica_SplitHeadsOp : Mica_PureOp<"split_heads", [Mica_RunsNoKernel, Mica_NotProbed]> {
  let summary = "rows split into heads";
  let description = [{
    A view of [T, H * D] as [T, H, D].

    Example:
    ```mlir
    func.func @split_heads(%q: tensor<?x64xf32>) {
      %h = mica.split_heads %q : tensor<?x64xf32> to tensor<?x8x8xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows:$x);
  let results = (outs Mica_Heads:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Mica_MergeHeadsOp : Mica_PureOp<"merge_heads", [Mica_RunsNoKernel, Mica_NotProbed]> {
  let summary = "heads merged into rows";
  let description = [{
    A view of [T, H, D] as [T, H * D].

    Example:
    ```mlir
    func.func @merge_heads(%h: tensor<?x8x8xf32>) {
      %x = mica.merge_heads %h : tensor<?x8x8xf32> to tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Heads:$x);
  let results = (outs Mica_Rows:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Mica_SplitOp : Mica_PureOp<"split", [Mica_RunsNoKernel]> {
  let summary = "rows split by columns";
  let description = [{
    Splits [T, N1 + N2 + ...] into [T, N1], [T, N2], ...: views, never copies. Used by models for the output of a
    convolution over several inputs, and by fusion for merged matmuls.

    Example:
    ```mlir
    func.func @split(%qkv: tensor<?x128xf32>) {
      %q, %k, %v = mica.split %qkv : tensor<?x128xf32> -> tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows32:$x);
  let results = (outs Variadic<Mica_Rows32>:$parts);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($parts)";
  let hasVerifier = 1;
}

def Mica_SelectHeadOp : Mica_PureOp<"select_head", [Mica_SelectsEntry]> {
  let summary = "one head of each row";
  let description = [{
    `y[t] = x[t, index]`. Used for embeddings of a token that differ by layer: `x` has those of all layers, and a layer
    selects its own. The index must be that of a head.

    Example:
    ```mlir
    func.func @select_head(%x: tensor<?x8x16xf32>, %layer: index) {
      %y = mica.select_head %x[%layer] : tensor<?x8x16xf32> -> tensor<?x16xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Heads32:$x, Index:$index);
  let results = (outs Mica_Rows32:$result);
  let assemblyFormat = "$x `[` $index `]` attr-dict `:` type($x) `->` type($result)";
  let extraClassDeclaration = [{
    int64_t getNumEntries() { return ::llvm::cast<::mlir::RankedTensorType>(getX().getType()).getDimSize(1); }
    static ::llvm::StringRef getEntryNoun() { return "head"; }
  }];
  let hasVerifier = 1;
}

def Mica_ProbeOp : Mica_PureOp<"probe", [AllTypesMatch<["x", "result"]>, Mica_NotProbed]> {
  let summary = "identity that records its operand";
  let description = [{
    `y = x`. A program with probes writes their operands, in order of execution, to the file given by
    `PROGRAM score --probes FILE`; `mica verify` compares them with the values of the interpreter at the same probes.
    `layer` is the index of the layer that contains the probe.

    Example:
    ```mlir
    func.func @probe(%x: tensor<?x64xf32>, %layer: index) {
      %y = mica.probe %x "linear o_proj" layer(%layer) : tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Probed:$x, StrAttr:$name, Optional<Index>:$layer);
  let results = (outs Mica_Probed:$result);
  let assemblyFormat = "$x $name (`layer` `(` $layer^ `)`)? attr-dict `:` type($x)";
}

def Mica_SelectRowsOp : Mica_PureOp<"select_rows", [Mica_HasStepRoles]> {
  let summary = "a gather of rows";
  let description = [{
    `y[i] = x[rows[i]]`. Used to drop rows before the logits, because only the last token of a prompt needs them.

    Example:
    ```mlir
    func.func @select_rows(%x: tensor<?x64xf32>, %rows: tensor<?xi32>) {
      %y = mica.select_rows %x, %rows : tensor<?x64xf32>, tensor<?xi32> -> tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows:$x, Mica_RowIndex:$rows);
  let results = (outs Mica_Rows:$result);
  let assemblyFormat = "$x `,` $rows attr-dict `:` type($x) `,` type($rows) `->` type($result)";
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mica::StepOperand> getStepRoles() {
      return {{getX(), StepRows::OfTokens}, {getRows(), EntryRole::LogitIndices}};
    }
    ::std::optional<::mica::StepRole> getResultRole() { return StepRows::OfOutputs; }
  }];
  let hasVerifier = 1;
}
