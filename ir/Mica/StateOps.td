// Ops with a state of fixed size.

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

def Mica_LinearAttentionOp : Mica_PureOp<"linear_attention", [
    AllTypesMatch<["q", "k"]>, AllTypesMatch<["v", "result"]>, AllTypesMatch<["state", "next"]>, Mica_UpdatesState]> {
  let summary = "linear attention with a decay per head: the recurrence of Mamba 2";
  let description = [{
    Of every head, `S[p] = decay[t] S[p - 1] + k[t] v[t]^T` and `y[t] = S[p]^T q[t]`: p is `positions[t]`, `S[p - 1]` is
    what the sequence had before the row, zero before position 0. Heads of v and of `decay` are a multiple of those of q
    and k; neighbors share one. The op leaves `S[p]` in the state at layer `layer`, and consumes it (see
    `mica.kv_append`). The rows of a sequence come in the order of their positions, and without a gap: the row before
    each must be known.

    Mamba 2 (Dao and Gu 2024, arXiv:2405.21060) has C for q, B for k, dt x for v and exp(dt A) for the decay.

    Example:
    ```mlir
    func.func @linear_attention(%q: tensor<?x2x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x8x12xf32>,
        %decay: tensor<?x8xf32>, %state: !mica.recurrent_state<10 x 8 x 16 x 12 x f32>,
        %layer: index, %sequences: tensor<?xi32>, %positions: tensor<?xi32>) {
      %y, %next = mica.linear_attention %q, %k, %v decay(%decay : tensor<?x8xf32>), %state[%layer]
          at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>)
          : tensor<?x2x16xf32>, tensor<?x8x12xf32>, !mica.recurrent_state<10 x 8 x 16 x 12 x f32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Heads:$q, Mica_Heads:$k, Mica_Heads:$v, Mica_Rows32:$decay,
                       Mica_RecurrentStateType:$state, Index:$layer, Mica_RowIndex:$sequences,
                       Mica_RowIndex:$positions);
  let results = (outs Mica_Heads:$result, Mica_RecurrentStateType:$next);
  let assemblyFormat = [{
    $q `,` $k `,` $v `decay` `(` $decay `:` type($decay) `)` `,` $state `[` $layer `]`
    `at` `(` $sequences `,` $positions `:` type($sequences) `,` type($positions) `)`
    attr-dict `:` type($q) `,` type($v) `,` type($state)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mica::StateUpdate> getStateUpdates() { return {{getState(), getNext(), getLayer()}}; }
    ::llvm::SmallVector<::mlir::Value> getTokenRows() { return {getQ(), getK(), getV(), getDecay()}; }
  }];
  let hasVerifier = 1;
}
