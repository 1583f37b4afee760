// Mixtures of experts.

def Mica_MoeGateOp : Mica_PureOp<"moe_gate", [AttrSizedOperandSegments, Mica_RoutesRows]> {
  let summary = "expert routing: the top-k experts of each token and their weights";
  let description = [{
    `scores = scoring(x W^T + bias)` over E experts in f32. The `k` experts with the highest scores are selected; ties
    (scores that are equal in f32) are resolved in favor of the lower index. With `normalize` the weights become
    `w / (sum w + eps)`. Returns weights [T, k] and experts [T, k] in descending order.

    `e_score_correction_bias` [E] is added to the scores for the selection of experts, but not to the weights. With
    `groups(n keep m by best)` the experts form n groups of consecutive experts, and only experts of the m best groups
    (`topk_group`) can be selected: the score of a group is that of its best expert, or with `by best_two` the sum of
    its two best scores. With `expert_scales` [E], the weight of a selected expert is finally multiplied by the scale of
    that expert.

    Example:
    ```mlir
    func.func @moe_gate(%x: tensor<?x64xf32>, %gate: tensor<4x64xf32>) {
      %weights, %experts = mica.moe_gate %x, %gate softmax k(2) normalize
          : tensor<?x64xf32>, tensor<4x64xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
      return
    }
    func.func @moe_gate_with_scales(%x: tensor<?x64xf32>, %gate: tensor<4x64xf32>, %s: tensor<4xf32>) {
      %weights, %experts = mica.moe_gate %x, %gate expert_scales(%s : tensor<4xf32>) softmax k(2) normalize eps(1.0e-06)
          : tensor<?x64xf32>, tensor<4x64xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
      return
    }
    func.func @moe_gate_of_groups(%x: tensor<?x64xf32>, %gate: tensor<8x64xf32>, %c: tensor<8xf32>) {
      %weights, %experts = mica.moe_gate %x, %gate e_score_correction_bias(%c : tensor<8xf32>) sigmoid k(2)
          groups(4 keep 2 by best_two) normalize
          : tensor<?x64xf32>, tensor<8x64xf32> -> tensor<?x2xf32>, tensor<?x2xi32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows32:$x, Mica_Matrix:$gate, Optional<Mica_Vector>:$bias,
                       Optional<Mica_Vector>:$e_score_correction_bias, Optional<Mica_Vector>:$expert_scales,
                       Mica_ScoringAttr:$scoring, I64Attr:$k, UnitAttr:$normalize,
                       DefaultValuedAttr<F64Attr, "1e-20">:$eps,
                       OptionalAttr<I64Attr>:$groups, OptionalAttr<I64Attr>:$topk_group,
                       OptionalAttr<Mica_GroupScoringAttr>:$group_scoring);
  let results = (outs Mica_Rows32:$weights, Mica_ExpertIds:$experts);
  let assemblyFormat = [{
    $x `,` $gate (`bias` `(` $bias^ `:` type($bias) `)`)?
    (`e_score_correction_bias` `(` $e_score_correction_bias^ `:` type($e_score_correction_bias) `)`)?
    (`expert_scales` `(` $expert_scales^ `:` type($expert_scales) `)`)?
    custom<Word>($scoring) `k` `(` $k `)`
    (`groups` `(` $groups^ `keep` $topk_group `by` custom<Word>($group_scoring) `)`)? (`normalize` $normalize^)?
    (`eps` `(` $eps^ `)`)? attr-dict
    `:` type($x) `,` type($gate) `->` type($weights) `,` type($experts)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> getVectors() {
      return {getBias(), getEScoreCorrectionBias(), getExpertScales()};
    }
  }];
  let hasVerifier = 1;
}

def Mica_MoeGateUpOp : Mica_PureOp<"moe_gate_up", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Mica_MultipliesRows, ["getMatrices", "getBiases"]>, Mica_RoundsResult]> {
  let summary = "the inner activations of the selected experts";
  let description = [{
    `y[t, j] = activation(gate_e x[t]) * (up_e x[t])` with e = experts[t, j]: the first half of `mica.moe_experts`, with
    its `clamped`, the biases of gate and up, and after fusion gate and up in one weight. `mica-shard` splits experts
    into two halves, because ranks that compute some columns of the inner activations each need all of them for
    `mica.moe_down`. The result is rounded once, to its type.

    Example:
    ```mlir
    func.func @moe_gate_up(%x: tensor<?x64xf32>, %experts: tensor<?x2xi32>, %gate: tensor<4x128x64xf32>,
        %up: tensor<4x128x64xf32>, %gate_bias: tensor<4x128xf32>, %up_bias: tensor<4x128xf32>) {
      %y = mica.moe_gate_up %x, %experts, %gate up(%up : tensor<4x128x64xf32>) silu
          : tensor<?x64xf32>, tensor<?x2xi32>, tensor<4x128x64xf32> -> tensor<?x2x128xf32>
      %z = mica.moe_gate_up %x, %experts, %gate up(%up : tensor<4x128x64xf32>)
          biases(%gate_bias, %up_bias : tensor<4x128xf32>, tensor<4x128xf32>) silu
          clamped(alpha 1.702000e+00 limit 7.000000e+00)
          : tensor<?x64xf32>, tensor<?x2xi32>, tensor<4x128x64xf32> -> tensor<?x2x128xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows:$x, Mica_ExpertIds:$experts, Mica_Matrices:$gate, Optional<Mica_Matrices>:$up,
                       Optional<Mica_Vectors>:$gate_bias, Optional<Mica_Vectors>:$up_bias,
                       Mica_ActivationAttr:$activation, OptionalAttr<F64Attr>:$alpha, OptionalAttr<F64Attr>:$limit);
  let results = (outs Mica_Heads:$result);
  let assemblyFormat = [{
    $x `,` $experts `,` $gate (`up` `(` $up^ `:` type($up) `)`)?
    (`biases` `(` $gate_bias^ `,` $up_bias `:` type($gate_bias) `,` type($up_bias) `)`)? custom<Word>($activation)
    (`clamped` `(` `alpha` $alpha^ `limit` $limit `)`)? attr-dict
    `:` type($x) `,` type($experts) `,` type($gate) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Mica_MoeDownOp : Mica_PureOp<"moe_down", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Mica_MultipliesRows, ["getMatrices", "getBiases"]>, Mica_AddsResidual]> {
  let summary = "the weighted sum of the down projections of the selected experts";
  let description = [{
    `y[t] = sum_j weights[t, j] * (down_e x[t, j] + bias[e]) + residual[t]` with e = experts[t, j]: the second half of
    `mica.moe_experts`, see `mica.moe_gate_up`. `residual` is set by fusion.

    Example:
    ```mlir
    func.func @moe_down(%x: tensor<?x2x128xf32>, %weights: tensor<?x2xf32>, %experts: tensor<?x2xi32>,
        %down: tensor<4x64x128xf32>, %bias: tensor<4x64xf32>) {
      %y = mica.moe_down %x, %weights, %experts, %down bias(%bias : tensor<4x64xf32>)
          : tensor<?x2x128xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x64x128xf32> -> tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_HeadRows:$x, Mica_Rows32:$weights, Mica_ExpertIds:$experts, Mica_Matrices:$down,
                       Optional<Mica_Vectors>:$bias, Optional<Mica_Rows32>:$residual);
  let results = (outs Mica_Rows32:$result);
  let assemblyFormat = [{
    $x `,` $weights `,` $experts `,` $down (`bias` `(` $bias^ `:` type($bias) `)`)?
    (`residual` `(` $residual^ `:` type($residual) `)`)? attr-dict
    `:` type($x) `,` type($weights) `,` type($experts) `,` type($down) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Mica_MoeExpertsOp : Mica_PureOp<"moe_experts", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<Mica_MultipliesRows, ["getMatrices", "getInnerMatrices", "getBiases"]>,
    Mica_AddsResidual]> {
  let summary = "the weighted sum of the selected experts";
  let description = [{
    `y[t] = sum_j weights[t, j] * down_e (activation(gate_e x[t]) * (up_e x[t])) + residual[t]` with e = experts[t, j].
    Experts that no token selected are not computed. Inner activations are rounded to the type of x for the second
    matmul. After fusion, `gate` holds gate and up in alternating blocks of 64 rows, without `up`, if their types agree.

    With `biases(gate, up, down)` [E, I], [E, I] and [E, C], row e of the bias is added to each matmul of expert e. With
    `clamped(alpha a limit l)`, the inner activations are `g sigmoid(a g) (u + 1)` instead, with
    `g = min(gate_e x, l)` and `u = clamp(up_e x, -l, l)`.

    Example:
    ```mlir
    func.func @moe_experts(%x: tensor<?x64xf32>, %weights: tensor<?x2xf32>,
        %experts: tensor<?x2xi32>, %gate: tensor<4x128x64xf32>, %down: tensor<4x64x128xf32>,
        %up: tensor<4x128x64xf32>) {
      %y = mica.moe_experts %x, %weights, %experts, %gate, %down up(%up : tensor<4x128x64xf32>) silu inner(128)
          : tensor<?x64xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x128x64xf32>, tensor<4x64x128xf32>
          -> tensor<?x64xf32>
      return
    }
    func.func @clamped_experts(%x: tensor<?x64xf32>, %weights: tensor<?x2xf32>,
        %experts: tensor<?x2xi32>, %gate: tensor<4x128x64xf32>, %down: tensor<4x64x128xf32>,
        %up: tensor<4x128x64xf32>, %gate_bias: tensor<4x128xf32>, %up_bias: tensor<4x128xf32>,
        %down_bias: tensor<4x64xf32>) {
      %y = mica.moe_experts %x, %weights, %experts, %gate, %down up(%up : tensor<4x128x64xf32>)
          biases(%gate_bias, %up_bias, %down_bias : tensor<4x128xf32>, tensor<4x128xf32>, tensor<4x64xf32>)
          silu clamped(alpha 1.702000e+00 limit 7.000000e+00) inner(128)
          : tensor<?x64xf32>, tensor<?x2xf32>, tensor<?x2xi32>, tensor<4x128x64xf32>, tensor<4x64x128xf32>
          -> tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows:$x, Mica_Rows32:$weights, Mica_ExpertIds:$experts, Mica_Matrices:$gate,
                       Mica_Matrices:$down, Optional<Mica_Matrices>:$up, Optional<Mica_Vectors>:$gate_bias,
                       Optional<Mica_Vectors>:$up_bias, Optional<Mica_Vectors>:$down_bias,
                       Optional<Mica_Rows32>:$residual, Mica_ActivationAttr:$activation,
                       OptionalAttr<F64Attr>:$alpha, OptionalAttr<F64Attr>:$limit, I64Attr:$inner);
  let results = (outs Mica_Rows32:$result);
  let assemblyFormat = [{
    $x `,` $weights `,` $experts `,` $gate `,` $down (`up` `(` $up^ `:` type($up) `)`)?
    (`biases` `(` $gate_bias^ `,` $up_bias `,` $down_bias `:` type($gate_bias) `,` type($up_bias) `,`
    type($down_bias) `)`)? (`residual` `(` $residual^ `:` type($residual) `)`)? custom<Word>($activation)
    (`clamped` `(` `alpha` $alpha^ `limit` $limit `)`)? `inner` `(` $inner `)` attr-dict
    `:` type($x) `,` type($weights) `,` type($experts) `,` type($gate) `,` type($down) `->` type($result)
  }];
  let hasVerifier = 1;
}
