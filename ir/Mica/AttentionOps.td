// Positions, caches and attention.

def Mica_RopeOp : Mica_PureOp<"rope", [AllTypesMatch<["x", "result"]>, Mica_RotatesByPosition, Mica_HasStepRoles]> {
  let summary = "rotary position embedding";
  let description = [{
    `inv_freq[i] = theta^(-2 i / rotary_dim)`, modified by `scaling`; each pair (a, b) of the first `rotary_dim`
    elements of a head becomes `(a cos - b sin, b cos + a sin)` of the angle `positions[t] * inv_freq[i]` (Su et al.
    2021, arXiv:2104.09864). Frequencies and angles are rounded to f32, as in training: at position 8000 this changes an
    angle by 2e-4. The pairing is an explicit attribute, because a wrong one causes fluent nonsense and not an error:
    `half` rotates elements i and i + rotary_dim / 2, `interleaved` rotates 2 i and 2 i + 1. Without `rotary_dim` the
    whole head is rotated. `lengths` is required by scalings that depend on the sequence length, and allowed only for
    them: for each row, the total length of its sequence, including positions that are still to be computed.

    Example:
    ```mlir
    func.func @rope(%q: tensor<?x8x8xf32>, %positions: tensor<?xi32>) {
      %r = mica.rope %q, %positions half theta(1.0e+04) : tensor<?x8x8xf32>, tensor<?xi32>
      %s = mica.rope %q, %positions interleaved theta(1.0e+06) scaling(#mica.linear_scaling<factor = 2.0>)
          : tensor<?x8x8xf32>, tensor<?xi32>
      return
    }
    func.func @follows(%q: tensor<?x8x8xf32>, %positions: tensor<?xi32>, %lengths: tensor<?xi32>) {
      %r = mica.rope %q, %positions lengths(%lengths : tensor<?xi32>) half theta(1.0e+04)
          scaling(#mica.dynamic_scaling<factor = 4.0, original_context = 2048>) : tensor<?x8x8xf32>, tensor<?xi32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Heads:$x, Mica_RowIndex:$positions, Optional<Mica_RowIndex>:$lengths,
                       Mica_PairingAttr:$pairing, F64Attr:$theta,
                       OptionalAttr<I64Attr>:$rotary_dim, OptionalAttr<Mica_RopeScalingAttr>:$scaling);
  let results = (outs Mica_Heads:$result);
  let assemblyFormat = [{
    $x `,` $positions (`lengths` `(` $lengths^ `:` type($lengths) `)`)?
    custom<Word>($pairing) `theta` `(` $theta `)` (`rotary_dim` `(` $rotary_dim^ `)`)?
    (`scaling` `(` $scaling^ `)`)?
    attr-dict `:` type($x) `,` type($positions)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// The number of elements of a head that are rotated.
    int64_t getRotaryWidth();
    ::llvm::SmallVector<::mica::StepOperand> getStepRoles() {
      return {{getX(), StepRows::OfTokens}, {getPositions(), EntryRole::Positions},
              {getLengths(), EntryRole::Lengths}};
    }
  }];
}

def Mica_SinusoidOp : Mica_PureOp<"sinusoid", [Mica_HasStepRoles]> {
  let summary = "sines and cosines of positions, as embeddings";
  let description = [{
    With `n = C / 2` and `f[i] = 10000^(-i / (n - 1))`: `y[t, i] = sin((positions[t] + offset) f[i])` and
    `y[t, n + i] = cos(...)` for i in [0, n). Frequencies and angles are rounded to f32, as for `mica.rope`.
    With `padding_idx(p)`, the row of position `p - offset` is zero, like the padding row `p` of an embedding table.

    Example:
    ```mlir
    func.func @sinusoid(%positions: tensor<?xi32>) {
      %y = mica.sinusoid %positions offset(2) : tensor<?xi32> -> tensor<?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_RowIndex:$positions, I64Attr:$offset, OptionalAttr<I64Attr>:$padding_idx);
  let results = (outs Mica_Rows32:$result);
  let assemblyFormat = [{
    $positions `offset` `(` $offset `)` (`padding_idx` `(` $padding_idx^ `)`)? attr-dict
    `:` type($positions) `->` type($result)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mica::StepOperand> getStepRoles() {
      return {{getPositions(), EntryRole::Positions}};
    }
    ::std::optional<::mica::StepRole> getResultRole() { return StepRows::OfTokens; }
  }];
  let hasVerifier = 1;
}

def Mica_ConcatHeadsOp : Mica_PureOp<"concat_heads"> {
  let summary = "concatenation of parts of heads";
  let description = [{
    `y[t, h] = [a[t, h], b[t, h]]`: D of the result is the sum of both. A part with a single head is shared by all
    heads, like the rotated part of MLA keys.

    Example:
    ```mlir
    func.func @concat_heads(%a: tensor<?x8x16xf32>, %b: tensor<?x1x4xf32>) {
      %y = mica.concat_heads %a, %b : tensor<?x8x16xf32>, tensor<?x1x4xf32> -> tensor<?x8x20xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Heads:$a, Mica_Heads:$b);
  let results = (outs Mica_Heads:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasVerifier = 1;
}

def Mica_KvAppendOp : Mica_PureOp<"kv_append", [AllTypesMatch<["cache", "result"]>, Mica_UpdatesState]> {
  let summary = "the cache with the keys or values of new tokens";
  let description = [{
    Writes `x[t]` at layer `layer`, sequence `sequences[t]`, position `positions[t]`. The op consumes the cache: using
    the old value afterwards is an error, so the append can always be done in place. A wider x is rounded to the
    cache's type; for `!mica.int8`, with one scale per head. Sequences and positions must be within the cache.

    Example:
    ```mlir
    func.func @kv_append(%k: tensor<?x4x8xf32>, %cache: !mica.kv_cache<5 x 4 x 8 x f32>,
        %layer: index, %sequences: tensor<?xi32>, %positions: tensor<?xi32>) {
      %next = mica.kv_append %k, %cache[%layer] at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>)
          : tensor<?x4x8xf32>, !mica.kv_cache<5 x 4 x 8 x f32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Heads:$x, Mica_KvCacheType:$cache, Index:$layer,
                       Mica_RowIndex:$sequences, Mica_RowIndex:$positions);
  let results = (outs Mica_KvCacheType:$result);
  let assemblyFormat = [{
    $x `,` $cache `[` $layer `]` `at` `(` $sequences `,` $positions `:` type($sequences) `,` type($positions) `)`
    attr-dict `:` type($x) `,` type($cache)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mica::StateUpdate> getStateUpdates() { return {{getCache(), getResult(), getLayer()}}; }
    ::llvm::SmallVector<::mlir::Value> getTokenRows() { return {getX()}; }
  }];
  let hasVerifier = 1;
}

def Mica_KvReadOp : Mica_PureOp<"kv_read", [Mica_ReadsState, Mica_RunsNoKernel]> {
  let summary = "the cached keys or values of one layer";
  let description = [{
    A view [B, P, G, D] of the first D elements of each head of layer `layer` of the cache, never a copy. P is the
    extent of the cache, not the number of tokens so far: positions that were never appended are zero. Elements of
    `!mica.int8` are not converted; attention reads them with their scales. D is the cache's head_dim, or less
    if the values of attention are a part of its keys, as for latents, which share one cache (see `mica-absorb-latent`).

    Example:
    ```mlir
    func.func @kv_read(%cache: !mica.kv_cache<5 x 4 x 8 x f32>, %layer: index) {
      %keys = mica.kv_read %cache[%layer] : !mica.kv_cache<5 x 4 x 8 x f32> -> tensor<?x?x4x8xf32>
      %values = mica.kv_read %cache[%layer] : !mica.kv_cache<5 x 4 x 8 x f32> -> tensor<?x?x4x6xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_KvCacheType:$cache, Index:$layer);
  let results = (outs Mica_Keys:$result);
  let assemblyFormat = "$cache `[` $layer `]` attr-dict `:` type($cache) `->` type($result)";
  let extraClassDeclaration = [{
    ::mlir::Value getState() { return getCache(); }
  }];
  let hasVerifier = 1;
}

def Mica_RepeatKvOp : Mica_PureOp<"repeat_kv", [SameOperandsAndResultElementType]> {
  let summary = "repetition of each key/value head (GQA)";
  let description = [{
    [B, P, G, D] becomes [B, P, G * n, D]: head h of the result is head h / n of x. The op expresses the semantics of
    GQA; it is folded into attention and never causes a copy.

    Example:
    ```mlir
    func.func @repeat_kv(%keys: tensor<?x?x4x8xf32>) {
      %r = mica.repeat_kv %keys times 2 : tensor<?x?x4x8xf32> -> tensor<?x?x8x8xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Keys:$x, I64Attr:$times);
  let results = (outs Mica_Keys:$result);
  let assemblyFormat = "$x `times` $times attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Mica_AttentionOp : Mica_PureOp<"attention", [AttrSizedOperandSegments, Mica_ReadsVectors, Mica_RoundsResult,
    Mica_HasStepRoles]> {
  let summary = "scaled dot-product attention of new tokens over all cached positions";
  let description = [{
    `y[t, h] = softmax(scale q[t, h] k[s, :, h / R]^T + mask) v[s, :, h / R]` with s = sequences[t] and R = H / G (R = 1
    until repeat_kv is folded); the softmax is computed in f32. With mask `causal`, token t attends to the positions
    0 .. positions[t] of its sequence, with `full` to all of them; `window` limits this to the last `window` positions,
    including its own; keys are masked where `key_mask` [B, P] is 0; `softcap` c replaces a scaled score x by
    `c tanh(x / c)`, before the mask. With slopes in `alibi`, one per query head, `slope d` is subtracted from the score
    of a key at distance d (Press et al. 2021, arXiv:2108.12409). `sinks` has one additional score per query head that
    takes part in the softmax but has no value (attention sink). The result of a token that attends to nothing is zero.
    `tiling` defines how the work is split into tasks; stage `kernels` adds it.

    Example:
    ```mlir
    func.func @attention(%q: tensor<?x8x64xf32>, %k: tensor<?x?x8x64xf32>, %v: tensor<?x?x8x64xf32>,
        %sequences: tensor<?xi32>, %positions: tensor<?xi32>) {
      %y = mica.attention %q, %k, %v at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>) causal scale(0.125)
          : tensor<?x8x64xf32>, tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32> -> tensor<?x8x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Mica_Heads:$q, Mica_Keys:$k, Mica_Keys:$v, Mica_RowIndex:$sequences, Mica_RowIndex:$positions,
                       Optional<Mica_KeyMask>:$key_mask, Optional<Mica_Vector>:$sinks, Mica_MaskKindAttr:$mask,
                       F64Attr:$scale, OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$softcap,
                       OptionalAttr<DenseF64ArrayAttr>:$alibi,
                       OptionalAttr<Mica_AttentionTilingAttr>:$tiling);
  let results = (outs Mica_Heads:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v `at` `(` $sequences `,` $positions `:` type($sequences) `,` type($positions) `)`
    (`key_mask` `(` $key_mask^ `:` type($key_mask) `)`)? (`sinks` `(` $sinks^ `:` type($sinks) `)`)?
    custom<Word>($mask) `scale` `(` $scale `)` (`window` `(` $window^ `)`)? (`softcap` `(` $softcap^ `)`)?
    (`alibi` `(` $alibi^ `)`)? (`tiling` `(` $tiling^ `)`)? attr-dict
    `:` type($q) `,` type($k) `,` type($v) `->` type($result)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> getVectors() { return {getSinks()}; }
    ::llvm::SmallVector<::mica::StepOperand> getStepRoles() {
      return {{getQ(), StepRows::OfTokens}, {getSequences(), EntryRole::Sequences},
              {getPositions(), EntryRole::Positions}};
    }
  }];
  let hasVerifier = 1;
}
