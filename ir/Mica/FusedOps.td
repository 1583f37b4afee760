// Ops created by fusion. Each is lowered as a whole by the pattern of its name.

def Mica_RopeTableOp : Mica_PureOp<"rope_table", [Mica_MadeByFusion, Mica_RotatesByPosition, Mica_HasStepRoles,
    Mica_NotProbed]> {
  let summary = "cosines and sines of rope for the positions of a step";
  let description = [{
    `y[t, 0, i] = a cos(positions[t] * inv_freq[i])`, `y[t, 1, i] = a sin(...)` for i in [0, rotary_dim / 2), where a is
    the attention factor of the scaling. Computed once per step and shared by all layers. `lengths` is as in
    `mica.rope`.

    Example:
    ```mlir
    func.func @rope_table(%positions: tensor<?xi32>) {
      %table = mica.rope_table %positions rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_RowIndex:$positions, Optional<Mica_RowIndex>:$lengths, I64Attr:$rotary_dim, F64Attr:$theta,
                       OptionalAttr<Mica_RopeScalingAttr>:$scaling);
  let results = (outs Mica_RopeTable:$result);
  let assemblyFormat = [{
    $positions (`lengths` `(` $lengths^ `:` type($lengths) `)`)?
    `rotary_dim` `(` $rotary_dim `)` `theta` `(` $theta `)` (`scaling` `(` $scaling^ `)`)?
    attr-dict `:` type($positions) `->` type($result)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mica::StepOperand> getStepRoles() {
      return {{getPositions(), EntryRole::Positions}, {getLengths(), EntryRole::Lengths}};
    }
    ::std::optional<::mica::StepRole> getResultRole() { return StepRows::OfTokens; }
  }];
  let hasVerifier = 1;
}

def Mica_QkvAppendOp : Mica_PureOp<"qkv_append", [AttrSizedOperandSegments,
    AllTypesMatch<["k_cache", "k_next"]>, AllTypesMatch<["v_cache", "v_next"]>, Mica_UpdatesState, Mica_ReadsVectors,
    DeclareOpInterfaceMethods<Mica_RoundsResult, ["getRoundedResult"]>, Mica_MadeByFusion]> {
  let summary = "q/k norms, rope and both cache appends in one pass over a merged q/k/v matmul";
  let description = [{
    qkv is [T, (H + 2 G) D]: H query heads, G key heads, G value heads. If their weights are stored in different
    formats, qkv is the first of several matmuls, which have these columns together with `parts`. Queries and keys are
    normalized over D if `q_norm` and `k_norm` are given (formula of `mica.rmsnorm`, with its `weight_offset`) and
    rotated by `table` (formula of `mica.rope`); keys and values are appended to the caches, and the queries are
    returned. Intermediate values are f32: keys and values are rounded once, to the caches' type, and queries once, to
    the type of `q`. The caches are consumed (see `mica.kv_append`).

    Example:
    ```mlir
    func.func @qkv_append(%qkv: tensor<?x128xf32>, %table: tensor<?x2x4xf32>,
        %k_cache: !mica.kv_cache<5 x 4 x 8 x f32>, %v_cache: !mica.kv_cache<5 x 4 x 8 x f32>,
        %layer: index, %sequences: tensor<?xi32>, %positions: tensor<?xi32>) {
      %q, %k1, %v1 = mica.qkv_append %qkv, %table, %k_cache, %v_cache[%layer]
          at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>) half
          : tensor<?x128xf32>, tensor<?x2x4xf32>, !mica.kv_cache<5 x 4 x 8 x f32>, !mica.kv_cache<5 x 4 x 8 x f32>
          -> tensor<?x8x8xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows32:$qkv, Mica_RopeTable:$table,
                       Mica_KvCacheType:$k_cache, Mica_KvCacheType:$v_cache,
                       Index:$layer, Mica_RowIndex:$sequences, Mica_RowIndex:$positions,
                       Optional<Mica_Vector>:$q_norm, Optional<Mica_Vector>:$k_norm,
                       Variadic<Mica_Rows32>:$parts, Mica_PairingAttr:$pairing,
                       OptionalAttr<F64Attr>:$eps, DefaultValuedAttr<F64Attr, "0.0">:$weight_offset);
  let results = (outs Mica_Heads:$q, Mica_KvCacheType:$k_next, Mica_KvCacheType:$v_next);
  let assemblyFormat = [{
    $qkv (`parts` `(` $parts^ `:` type($parts) `)`)? `,` $table `,` $k_cache `,` $v_cache `[` $layer `]`
    `at` `(` $sequences `,` $positions `:` type($sequences) `,` type($positions) `)`
    (`norms` `(` $q_norm^ `,` $k_norm `:` type($q_norm) `,` type($k_norm) `)`)?
    custom<Word>($pairing) (`eps` `(` $eps^ `)`)? (`weight_offset` `(` $weight_offset^ `)`)?
    custom<OldKeyword>("\"gain_offset\"") attr-dict
    `:` type($qkv) `,` type($table) `,` type($k_cache) `,` type($v_cache) `->` type($q)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mica::StateUpdate> getStateUpdates() {
      return {{getKCache(), getKNext(), getLayer(), KvKind::Keys},
              {getVCache(), getVNext(), getLayer(), KvKind::Values}};
    }
    ::llvm::SmallVector<::mlir::Value> getTokenRows();
    ::llvm::SmallVector<::mlir::Value> getVectors() { return {getQNorm(), getKNorm()}; }
  }];
  let hasVerifier = 1;
}

def Mica_GatedLinearOp : Mica_PureOp<"gated_linear", [
    Mica_MultipliesRows, Mica_SelectsKernel, Mica_RoundsResult, Mica_MadeByFusion]> {
  let summary = "gate and up projection, activation and multiplication in one op";
  let description = [{
    `y = activation(x G^T) * (x U^T)` [T, inner]. The weight holds G and U in alternating blocks of 64 rows, padded with
    zero rows (`mica.weight ... interleave`), so that one kernel computes both factors of a result: row i of G is row
    `i / 64 * 128 + i mod 64` of the weight, row i of U is 64 rows below. The result is rounded once, to its type.

    Example:
    ```mlir
    func.func @gated_linear(%x: tensor<?x64xf32>, %gate_up: tensor<384x64xf32>) {
      %h = mica.gated_linear %x, %gate_up silu : tensor<?x64xf32>, tensor<384x64xf32> -> tensor<?x172xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Rows:$x, Mica_Matrix:$weight, Mica_ActivationAttr:$activation,
                       OptionalAttr<Mica_KernelKindAttr>:$kernel);
  let results = (outs Mica_Rows:$result);
  let assemblyFormat = [{
    $x `,` $weight custom<Word>($activation) (`kernel` `(` custom<Word>($kernel)^ `)`)? attr-dict
    `:` type($x) `,` type($weight) `->` type($result)
  }];
  let hasVerifier = 1;
}
