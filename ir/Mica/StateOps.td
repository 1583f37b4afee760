// Ops with a state of fixed size, and ops that prepare their operands.

def Mica_CausalConv1dOp : Mica_PureOp<"causal_conv1d", [
    AllTypesMatch<["x", "result"]>, AllTypesMatch<["state", "next"]>, Mica_UpdatesState, Mica_ReadsVectors]> {
  let summary = "causal depthwise convolution over the positions of a sequence";
  let description = [{
    `y[t, c] = bias[c] + sum_j weight[c, j] z[p - K + 1 + j, c]` for j in [0, K), where p is `positions[t]`, `z[p]` is
    `x[t]`, and `z` at earlier positions are the previous rows of the same sequence, or zero before position 0.
    Every channel has its own filter of K taps, the last of which applies to the row itself; K is the window of the
    state. The op adds `x[t]` to the state at layer `layer`, and consumes the state (see `mica.kv_append`). The rows of
    a sequence must be in position order and without gaps.

    Example:
    ```mlir
    func.func @causal_conv1d(%x: tensor<?x64xf32>, %weight: tensor<64x3xf32>, %bias: tensor<64xf32>,
        %state: !mica.rolling_state<10 x 64 x f32 window(3)>,
        %layer: index, %sequences: tensor<?xi32>, %positions: tensor<?xi32>) {
      %y, %next = mica.causal_conv1d %x, %weight, %state[%layer]
          at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>) bias(%bias : tensor<64xf32>)
          : tensor<?x64xf32>, tensor<64x3xf32>, !mica.rolling_state<10 x 64 x f32 window(3)>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows32:$x, Mica_Filters:$weight, Mica_RollingStateType:$state, Index:$layer,
                       Mica_RowIndex:$sequences, Mica_RowIndex:$positions, Optional<Mica_Vector>:$bias);
  let results = (outs Mica_Rows32:$result, Mica_RollingStateType:$next);
  let assemblyFormat = [{
    $x `,` $weight `,` $state `[` $layer `]`
    `at` `(` $sequences `,` $positions `:` type($sequences) `,` type($positions) `)`
    (`bias` `(` $bias^ `:` type($bias) `)`)? attr-dict `:` type($x) `,` type($weight) `,` type($state)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mica::StateUpdate> getStateUpdates() { return {{getState(), getNext(), getLayer()}}; }
    ::llvm::SmallVector<::mlir::Value> getTokenRows() { return {getX()}; }
    ::llvm::SmallVector<::mlir::Value> getVectors() { return {getWeight(), getBias()}; }
  }];
  let hasVerifier = 1;
}

def Mica_SoftplusOp : Mica_PureOp<"softplus", [AllTypesMatch<["x", "result"]>, Mica_ReadsVectors]> {
  let summary = "softplus with a bias: the time steps of Mamba 2";
  let description = [{
    `y[t, h] = log(1 + exp(x[t, h] + bias[h]))`: a positive time step for every row and head.

    Example:
    ```mlir
    func.func @softplus(%dt: tensor<?x8xf32>, %bias: tensor<8xf32>) {
      %y = mica.softplus %dt bias(%bias) : tensor<?x8xf32>, tensor<8xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows32:$x, Mica_Vector:$bias);
  let results = (outs Mica_Rows32:$result);
  let assemblyFormat = "$x `bias` `(` $bias `)` attr-dict `:` type($x) `,` type($bias)";
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> getVectors() { return {getBias()}; }
  }];
  let hasVerifier = 1;
}

def Mica_DecayOp : Mica_PureOp<"decay", [AllTypesMatch<["dt", "result"]>, Mica_ReadsVectors]> {
  let summary = "the decay of a state over a time step";
  let description = [{
    `y[t, h] = exp(-exp(a_log[h]) dt[t, h])`, between 0 and 1 for positive time steps. `a_log` is stored as a logarithm,
    so that the rate of every head is positive.

    Example:
    ```mlir
    func.func @decay(%dt: tensor<?x8xf32>, %a_log: tensor<8xf32>) {
      %y = mica.decay %dt, %a_log : tensor<?x8xf32>, tensor<8xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows32:$dt, Mica_Vector:$a_log);
  let results = (outs Mica_Rows32:$result);
  let assemblyFormat = "$dt `,` $a_log attr-dict `:` type($dt) `,` type($a_log)";
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> getVectors() { return {getALog()}; }
  }];
  let hasVerifier = 1;
}

def Mica_ScaleHeadsOp : Mica_PureOp<"scale_heads", [AllTypesMatch<["x", "result"]>, Mica_ReadsVectors]> {
  let summary = "heads multiplied by a factor each";
  let description = [{
    `y[t, h, d] = factors[t, h] x[t, h, d]`, or `factors[h] x[t, h, d]` if the factors are a weight: the time steps and
    the skip connection D of Mamba 2.

    Example:
    ```mlir
    func.func @scale_heads(%x: tensor<?x8x16xf32>, %dt: tensor<?x8xf32>, %d: tensor<8xf32>) {
      %y = mica.scale_heads %x by(%dt) : tensor<?x8x16xf32>, tensor<?x8xf32>
      %z = mica.scale_heads %x by(%d) : tensor<?x8x16xf32>, tensor<8xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Heads:$x, Mica_HeadFactors:$factors);
  let results = (outs Mica_Heads:$result);
  let assemblyFormat = "$x `by` `(` $factors `)` attr-dict `:` type($x) `,` type($factors)";
  let extraClassDeclaration = [{
    /// Whether the factors are a weight, the same for all rows.
    bool hasWeight() { return ::llvm::cast<::mlir::RankedTensorType>(getFactors().getType()).getRank() == 1; }
    ::llvm::SmallVector<::mlir::Value> getVectors() {
      return {hasWeight() ? ::mlir::Value(getFactors()) : ::mlir::Value()};
    }
  }];
  let hasVerifier = 1;
}

def Mica_LinearAttentionOp : Mica_PureOp<"linear_attention", [
    AllTypesMatch<["q", "k"]>, AllTypesMatch<["v", "result"]>, AllTypesMatch<["state", "next"]>, Mica_UpdatesState]> {
  let summary = "linear attention with a decay per head: the recurrences of Mamba 2 and of the gated delta rule";
  let description = [{
    For every head, `S[p] = decay[t] S[p - 1] + k[t] u[t]^T` and `y[t] = S[p]^T q[t]`, where p is `positions[t]` and
    `S[p - 1]` is the matrix of the sequence before the row, zero before position 0. The number of heads of v, `decay`
    and `beta` is a multiple of the number of heads of q and k, each of which is shared by consecutive heads of v. The
    op stores `S[p]` in the state at layer `layer`, and consumes the state (see `mica.kv_append`). The rows of a
    sequence must be in position order and without gaps.

    Without `beta`, `u[t] = v[t]`. Mamba 2 (Dao and Gu 2024, arXiv:2405.21060) has C for q, B for k, dt x for v and
    exp(dt A) for the decay.

    With `beta`, `u[t] = beta[t] (v[t] - decay[t] S[p - 1]^T k[t])`: the gated delta rule (Yang et al. 2024,
    arXiv:2412.06464), which replaces a fraction beta of the value stored for the key.

    Example:
    ```mlir
    func.func @linear_attention(%q: tensor<?x2x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x8x12xf32>,
        %decay: tensor<?x8xf32>, %beta: tensor<?x8xf32>, %state: !mica.recurrent_state<10 x 8 x 16 x 12 x f32>,
        %other: !mica.recurrent_state<10 x 8 x 16 x 12 x f32>,
        %layer: index, %sequences: tensor<?xi32>, %positions: tensor<?xi32>) {
      %y, %next = mica.linear_attention %q, %k, %v decay(%decay : tensor<?x8xf32>), %state[%layer]
          at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>)
          : tensor<?x2x16xf32>, tensor<?x8x12xf32>, !mica.recurrent_state<10 x 8 x 16 x 12 x f32>
      %z, %last = mica.linear_attention %q, %k, %v decay(%decay : tensor<?x8xf32>) beta(%beta : tensor<?x8xf32>),
          %other[%layer] at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>)
          : tensor<?x2x16xf32>, tensor<?x8x12xf32>, !mica.recurrent_state<10 x 8 x 16 x 12 x f32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Heads:$q, Mica_Heads:$k, Mica_Heads:$v, Mica_Rows32:$decay,
                       Mica_RecurrentStateType:$state, Index:$layer, Mica_RowIndex:$sequences,
                       Mica_RowIndex:$positions, Optional<Mica_Rows32>:$beta);
  let results = (outs Mica_Heads:$result, Mica_RecurrentStateType:$next);
  let assemblyFormat = [{
    $q `,` $k `,` $v `decay` `(` $decay `:` type($decay) `)` (`beta` `(` $beta^ `:` type($beta) `)`)? `,`
    $state `[` $layer `]` `at` `(` $sequences `,` $positions `:` type($sequences) `,` type($positions) `)`
    attr-dict `:` type($q) `,` type($v) `,` type($state)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mica::StateUpdate> getStateUpdates() { return {{getState(), getNext(), getLayer()}}; }
    ::llvm::SmallVector<::mlir::Value> getTokenRows() {
      ::llvm::SmallVector<::mlir::Value> rows{getQ(), getK(), getV(), getDecay()};
      if (getBeta())
        rows.push_back(getBeta());
      return rows;
    }
  }];
  let hasVerifier = 1;
}
