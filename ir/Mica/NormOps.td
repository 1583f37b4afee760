// Normalization.

def Mica_RmsNormOp : Mica_PureOp<"rmsnorm", [Mica_ReadsVectors,
    DeclareOpInterfaceMethods<Mica_RoundsResult, ["canQuantizeResult"]>]> {
  let summary = "root mean square normalization over the last axis";
  let description = [{
    `y = (weight_offset + w) * (x * rsqrt(mean(x^2, last axis) + eps))` (Zhang and Sennrich 2019, arXiv:1910.07467). The
    mean and the root are computed in f32. `rounding` defines where a narrow x is rounded: `before_weight` rounds the
    normalized value to the type of x before multiplying it by the weight and once more after it; `after_weight`
    multiplies in f32 and rounds to the type of x once. For f32 both are the same. The result may have another type than
    x, which replaces a `mica.cast` of the result. A weight [H, D] has a row for each head of x.

    Example:
    ```mlir
    func.func @rmsnorm(%x: tensor<?x64xf32>, %w: tensor<64xf32>) {
      %y = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_RowsOrHeads:$x, Mica_NormVector:$weight, F64Attr:$eps,
                       DefaultValuedAttr<Mica_NormRoundingAttr, "::mica::NormRounding::BeforeWeight">:$rounding,
                       DefaultValuedAttr<F64Attr, "0.0">:$weight_offset);
  let results = (outs Mica_RowsOrHeads:$result);
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> getVectors() { return {getWeight()}; }
  }];
  let assemblyFormat = [{
    $x `,` $weight `eps` `(` $eps `)` (`rounding` `(` custom<Word>($rounding)^ `)`)?
    (`weight_offset` `(` $weight_offset^ `)`)? custom<OldKeyword>("\"gain_offset\"")
    attr-dict `:` type($x) `,` type($weight) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Mica_L2NormOp : Mica_PureOp<"l2norm", [SameOperandsAndResultType]> {
  let summary = "division by the Euclidean norm of the last axis";
  let description = [{
    `y = x * rsqrt(sum(x^2, last axis) + eps)`, with the sum and the root in f32. Used for queries and keys of the gated
    delta rule, whose state stays bounded if keys have a norm of at most 1.

    Example:
    ```mlir
    func.func @l2norm(%k: tensor<?x2x16xf32>) {
      %y = mica.l2norm %k eps(1.0e-06) : tensor<?x2x16xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_RowsOrHeads:$x, F64Attr:$eps);
  let results = (outs Mica_RowsOrHeads:$result);
  let assemblyFormat = "$x `eps` `(` $eps `)` attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Mica_LayerNormOp : Mica_PureOp<"layernorm", [Mica_ReadsVectors,
    DeclareOpInterfaceMethods<Mica_RoundsResult, ["canQuantizeResult"]>]> {
  let summary = "layer normalization over the last axis";
  let description = [{
    `y = w * (x - mean(x)) * rsqrt(variance(x) + eps) + b` (Ba et al. 2016, arXiv:1607.06450), with the variance without
    Bessel's correction, all in f32. A weight [H, D] and its bias have a row for each head of x.

    Example:
    ```mlir
    func.func @layernorm(%x: tensor<?x64xf32>, %w: tensor<64xf32>, %b: tensor<64xf32>) {
      %y = mica.layernorm %x, %w bias(%b : tensor<64xf32>) eps(1.0e-05)
          : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_RowsOrHeads:$x, Mica_NormVector:$weight, Optional<Mica_NormVector>:$bias, F64Attr:$eps);
  let results = (outs Mica_RowsOrHeads:$result);
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> getVectors() { return {getWeight(), getBias()}; }
  }];
  let assemblyFormat = [{
    $x `,` $weight (`bias` `(` $bias^ `:` type($bias) `)`)? `eps` `(` $eps `)`
    attr-dict `:` type($x) `,` type($weight) `->` type($result)
  }];
  let hasVerifier = 1;
}
