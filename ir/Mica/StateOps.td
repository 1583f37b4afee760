// Ops that rewrite a state of fixed size.

def Mica_CausalConv1dOp : Mica_PureOp<"causal_conv1d", [
    AllTypesMatch<["x", "result"]>, AllTypesMatch<["state", "next"]>, Mica_UpdatesState, Mica_ReadsVectors]> {
  let summary = "causal depthwise convolution over the positions of a sequence";
  let description = [{
    `y[t, c] = bias[c] + sum_j weight[c, j] z[p - K + 1 + j, c]` for j in [0, K): p is `positions[t]`, `z[p]` is `x[t]`,
    and `z` of the positions before it are the rows of the same sequence that were there before, zero before position 0.
    Every channel has a filter of its own of K taps, the last of which is for the row itself; K is the window of the
    state. The op adds `x[t]` to the state at layer `layer`, and consumes it (see `mica.kv_append`). The rows of a
    sequence come in the order of their positions, and without a gap: the row before each must be known.

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
