// The passes on the `mica` dialect, in the order in which the pipelines run them.

#ifndef MICA_PASSES
#define MICA_PASSES

include "mlir/Pass/PassBase.td"

class Mica_PrecisionOption<string name, string what> : Option<name, name, "::mica::Precision", "::mica::Precision::F32",
    "precision of " # what, [{::mica::precisionValues()}]>;

// Verifiers of stage boundaries ------------------------------------------------------------------------------------

def VerifyModel : Pass<"mica-verify-model", "::mlir::ModuleOp"> {
  let summary = "verify the boundary of stage `model`";
  let description = [{
    Checks that
    - all ops are of `mica`, `func` and `arith`, and none of them is created by fusion;
    - `mica.model` defines the number of positions, the begin and end tokens and the sampling settings, and nothing
      else;
    - `@main` takes, identified by `mica.role` and in any order, `tokens, sequences, positions, logit_indices :
      tensor<?xi32>` (and `lengths : tensor<?xi32>` for ropes that depend on it) and caches, and returns `logits :
      tensor<?xVxf32>` of the rows that `mica.select_rows` selects with `logit_indices`, and the caches in order;
    - with a multi-token prediction head, `@main` and `@draft` also take and return `hidden : tensor<?xCxf32>`;
    - ops use the arguments of the right role;
    - calls are not recursive;
    - layer indices are within their caches, no layer is appended to twice, and no attention looks further back than
      the window of its caches;
    - a cache is consumed by a single op: an append, a call or a loop.

    Any use of a cache after it has been consumed is an error:

    ```mlir
    !cache = !mica.kv_cache<2 x 2 x 8 x f32>
    mica.weight @table : tensor<96x16xf32>
    func.func @main(%tokens: tensor<?xi32> {mica.role = "tokens"}, %sequences: tensor<?xi32> {mica.role = "sequences"},
        %positions: tensor<?xi32> {mica.role = "positions"},
        %logit_indices: tensor<?xi32> {mica.role = "logit_indices"},
        %cache: !cache {mica.role = "cache"})
        -> (tensor<?x16xf32> {mica.role = "logits"}, !cache {mica.role = "cache"}) {
      %layer = arith.constant 0 : index
      %table = mica.get_weight @table : tensor<96x16xf32>
      %x = mica.embedding %tokens, %table : tensor<?xi32>, tensor<96x16xf32> -> tensor<?x16xf32>
      %k = mica.split_heads %x : tensor<?x16xf32> to tensor<?x2x8xf32>
      // expected-note @+1 {{the cache is consumed here}}
      %next = mica.kv_append %k, %cache[%layer] at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>)
          : tensor<?x2x8xf32>, !cache
      // expected-error @+1 {{the cache is used after mica.kv_append}}
      %old = mica.kv_read %cache[%layer] : !cache -> tensor<?x?x2x8xf32>
      return %x, %next : tensor<?x16xf32>, !cache
    }
    ```
  }];
}

def VerifyFused : Pass<"mica-verify-fused", "::mlir::ModuleOp"> {
  let summary = "verify the boundary of stage `fused`";
  let description = [{
    Like `mica-verify-model`, but ops created by fusion are allowed, and no `mica.repeat_kv` of a cache is left, because
    it would copy the cache once per layer and step:

    ```mlir
    !cache = !mica.kv_cache<2 x 2 x 8 x f32>
    func.func private @layer(%cache: !cache) {
      %layer = arith.constant 0 : index
      %keys = mica.kv_read %cache[%layer] : !cache -> tensor<?x?x2x8xf32>
      // expected-error @+1 {{of a cache is left and would copy it}}
      %r = mica.repeat_kv %keys times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
      return
    }
    ```
  }];
}

// model -> fused ------------------------------------------------------------------------------------------------------

def AbsorbLatent : Pass<"mica-absorb-latent", "::mlir::ModuleOp"> {
  let summary = "store latents in caches instead of keys and values (MLA)";
  let description = [{
    If the keys (except for a part that all heads share) and the values of each head are projections of one latent c,
    attention can be computed on latents (DeepSeek-AI 2024, arXiv:2405.04434): `q_h (A_h c)^T = (q_h A_h) c^T` and
    `sum_p w_p (B_h c_p) = B_h sum_p w_p c_p`. The cache then holds c and the shared part for each position: one
    key/value head, whose first elements are the values, instead of the keys and values of H heads. The matrices A_h
    and B_h become weights of `mica.head_linear` before and after attention, A_h transposed, and the cache of the values
    is removed from all functions:

    ```mlir
    // mica-opt --mica-absorb-latent
    !k = !mica.kv_cache<1 x 4 x 12 x f32>
    !v = !mica.kv_cache<1 x 4 x 8 x f32>
    func.func private @layer(%c: tensor<?x16xf32>, %t: tensor<?x1x4xf32>, %qa: tensor<?x4x8xf32>,
        %qb: tensor<?x4x4xf32>, %kc: !k, %vc: !v, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>,
        %wk: tensor<32x16xf32>, %wv: tensor<32x16xf32>) -> (tensor<?x4x8xf32>, !k, !v) {
      %0 = mica.linear %c, %wk : tensor<?x16xf32>, tensor<32x16xf32> -> tensor<?x32xf32>
      %1 = mica.split_heads %0 : tensor<?x32xf32> to tensor<?x4x8xf32>
      %k = mica.concat_heads %1, %t : tensor<?x4x8xf32>, tensor<?x1x4xf32> -> tensor<?x4x12xf32>
      %2 = mica.linear %c, %wv : tensor<?x16xf32>, tensor<32x16xf32> -> tensor<?x32xf32>
      %v = mica.split_heads %2 : tensor<?x32xf32> to tensor<?x4x8xf32>
      %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x4x12xf32>, !k
      %vn = mica.kv_append %v, %vc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x4x8xf32>, !v
      %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x4x12xf32>
      %vr = mica.kv_read %vn[%layer] : !v -> tensor<?x?x4x8xf32>
      %q = mica.concat_heads %qa, %qb : tensor<?x4x8xf32>, tensor<?x4x4xf32> -> tensor<?x4x12xf32>
      %y = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
          : tensor<?x4x12xf32>, tensor<?x?x4x12xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
      return %y, %kn, %vn : tensor<?x4x8xf32>, !k, !v
    }
    ```
    becomes
    ```mlir
    !k = !mica.kv_cache<1 x 1 x 20 x f32>
    func.func private @layer(%c: tensor<?x16xf32>, %t: tensor<?x1x4xf32>, %qa: tensor<?x4x8xf32>,
        %qb: tensor<?x4x4xf32>, %kc: !k, %layer: index, %s: tensor<?xi32>, %p: tensor<?xi32>, %wk: tensor<4x16x8xf32>,
        %wv: tensor<4x8x16xf32>) -> (tensor<?x4x8xf32>, !k) {
      %l = mica.split_heads %c : tensor<?x16xf32> to tensor<?x1x16xf32>
      %k = mica.concat_heads %l, %t : tensor<?x1x16xf32>, tensor<?x1x4xf32> -> tensor<?x1x20xf32>
      %kn = mica.kv_append %k, %kc[%layer] at(%s, %p : tensor<?xi32>, tensor<?xi32>) : tensor<?x1x20xf32>, !k
      %kr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x1x20xf32>
      %vr = mica.kv_read %kn[%layer] : !k -> tensor<?x?x1x16xf32>
      %m = mica.head_linear %qa, %wk : tensor<?x4x8xf32>, tensor<4x16x8xf32> -> tensor<?x4x16xf32>
      %q = mica.concat_heads %m, %qb : tensor<?x4x16xf32>, tensor<?x4x4xf32> -> tensor<?x4x20xf32>
      %a = mica.attention %q, %kr, %vr at(%s, %p : tensor<?xi32>, tensor<?xi32>) causal scale(0.3)
          : tensor<?x4x20xf32>, tensor<?x?x1x20xf32>, tensor<?x?x1x16xf32> -> tensor<?x4x16xf32>
      %y = mica.head_linear %a, %wv : tensor<?x4x16xf32>, tensor<4x8x16xf32> -> tensor<?x4x8xf32>
      return %y, %kn : tensor<?x4x8xf32>, !k
    }
    ```
    The matrices that calls pass become a stack of slices of the same tensor: the keys'
    `[#mica.slice<"kv_b", rows 0 to 8 of 16>]` becomes the stack of `#mica.slice<"kv_b", rows 0 to 8 of 64,
    as_columns>`, `#mica.slice<"kv_b", rows 16 to 24 of 64, as_columns>` and so on. The caches, and with them the bytes
    that a step reads, become 9 times smaller for DeepSeek-V2-Lite, 71 times for V3. The cost per score and position
    increases, for V3 from 320 to 1088 multiply-adds, which matters for long prompts. Because layers share their caches,
    nothing is changed if one attention has another form, or if a latent is not smaller than the keys and values that
    are projected from it.
  }];
  let dependentDialects = ["::mica::MicaDialect"];
}

def PreserveBlocks : Pass<"mica-preserve-blocks", "::mlir::ModuleOp"> {
  let summary = "keep block-quantized weights in their formats";
  let description = [{
    A weight whose sources are stored in blocks (`stored`) gets that type, so that the program uses the blocks of the
    checkpoint bit for bit. Layers whose weights are stored in different formats have different types: a function that
    is called with several is copied for each. Blocks are not preserved, with a warning that states the new type (f32,
    or `weights` if a matmul or a table reads the weight), if the rows are not whole blocks, if the weight is read
    transposed, if it is not the matrix of a matmul or a table, or if it is the same value as another weight that is
    stored differently. Gate, up and down of experts preserve their blocks independently of each other.

    ```mlir
    mica.weight @q {stored = !mica.block<q8_0>} : tensor<16x32xf32>
    func.func @main(%x: tensor<?x32xf32>) -> tensor<?x16xf32> {
      %wq = mica.get_weight @q : tensor<16x32xf32>
      %q = mica.linear %x, %wq : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
      return %q : tensor<?x16xf32>
    }
    ```
    becomes
    ```mlir
    !blocks = !mica.block<q8_0>
    mica.weight @q {stored = !blocks} : tensor<16x32x!blocks>
    func.func @main(%x: tensor<?x32xf32>) -> tensor<?x16xf32> {
      %wq = mica.get_weight @q : tensor<16x32x!blocks>
      %q = mica.linear %x, %wq : tensor<?x32xf32>, tensor<16x32x!blocks> -> tensor<?x16xf32>
      return %q : tensor<?x16xf32>
    }
    ```
  }];
  let options = [Mica_PrecisionOption<"weights", "matrices that keep no blocks">];
}

def EqualizeChannels : Pass<"mica-equalize-channels", "::mlir::ModuleOp"> {
  let summary = "equalize channels across layers before quantization";
  let description = [{
    Adds `mica.equalize` where one side of a matmul can be divided, channel by channel, by a factor that the other side
    is multiplied by: the weights of a norm that only matmuls (and expert routers) read, and the columns of these
    matmuls; the rows of `up` and the columns of `down` in `linear(mul(a, linear(x, up)), down)`, expert by expert in
    `mica.moe_experts`. Weights with other uses, such as an embedding table tied to lm_head, and weights with preserved
    blocks are not changed. A norm's `weight_offset` is added when its weights are read, in f32 as the norm would, for
    all its calls or none. The model's values are bit-identical; later rounding to integers loses less. The pass runs
    if weights are quantized to integers.

    ```mlir
    mica.weight @"norm.weight" : tensor<32xf32>
    mica.weight @"q_proj.weight" : tensor<16x32xf32>
    func.func @main(%x: tensor<?x32xf32>) -> tensor<?x16xf32> {
      %norm = mica.get_weight @"norm.weight" : tensor<32xf32>
      %wq = mica.get_weight @"q_proj.weight" : tensor<16x32xf32>
      %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
      %q = mica.linear %n, %wq : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
      return %q : tensor<?x16xf32>
    }
    ```
    becomes
    ```mlir
    mica.weight @"norm.weight" : tensor<32xf32>
    mica.equalize rows ["norm.weight"] columns ["q_proj.weight"]
    mica.weight @"q_proj.weight" : tensor<16x32xf32>
    func.func @main(%x: tensor<?x32xf32>) -> tensor<?x16xf32> {
      %norm = mica.get_weight @"norm.weight" : tensor<32xf32>
      %wq = mica.get_weight @"q_proj.weight" : tensor<16x32xf32>
      %n = mica.rmsnorm %x, %norm eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
      %q = mica.linear %n, %wq : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
      return %q : tensor<?x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect"];
}

def AssignPrecision : Pass<"mica-assign-precision", "::mlir::ModuleOp"> {
  let summary = "assign the precision of weights and caches";
  let description = [{
    Matrices of matmuls and tables get the precision `weights`, caches the precision `kv`; norm weights, biases and
    expert routers are f32. `int8` is `!mica.block<int8_g32>`; `int4` is `int4_g32`, with `int6_g32` for tables and
    lm_head. Weights with preserved blocks already have a type. Activations multiplied by blocks become `!mica.int_rows`
    of 16 bits at the input of the matmul. Experts whose matrices are floats in part share one type of activations,
    that of the floats, to which the blocks are expanded. An `int8` cache quantizes keys and values when they are
    appended, with a scale per head and position; `int4` is for weights only. Residual stream, norms, softmax and
    accumulation stay f32: a value is rounded once, at the input of a matmul or a cache (queries also if keys are bf16),
    and all matmuls of a value share the cast.

    ```mlir
    // mica-opt --mica-assign-precision=weights=bf16
    mica.weight @q : tensor<32x32xf32>
    mica.weight @k : tensor<16x32xf32>
    func.func @main(%x: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>) {
      %wq = mica.get_weight @q : tensor<32x32xf32>
      %wk = mica.get_weight @k : tensor<16x32xf32>
      %q = mica.linear %x, %wq : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
      %k = mica.linear %x, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
      return %q, %k : tensor<?x32xf32>, tensor<?x16xf32>
    }
    ```
    becomes
    ```mlir
    mica.weight @q : tensor<32x32xbf16>
    mica.weight @k : tensor<16x32xbf16>
    func.func @main(%x: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>) {
      %b = mica.cast %x : tensor<?x32xf32> to tensor<?x32xbf16>
      %wq = mica.get_weight @q : tensor<32x32xbf16>
      %wk = mica.get_weight @k : tensor<16x32xbf16>
      %q = mica.linear %b, %wq : tensor<?x32xbf16>, tensor<32x32xbf16> -> tensor<?x32xf32>
      %k = mica.linear %b, %wk : tensor<?x32xbf16>, tensor<16x32xbf16> -> tensor<?x16xf32>
      return %q, %k : tensor<?x32xf32>, tensor<?x16xf32>
    }
    ```
  }];
  let options = [Mica_PrecisionOption<"weights", "matrices">, Mica_PrecisionOption<"kv", "caches">];
  let dependentDialects = ["::mica::MicaDialect"];
}

def FoldRepeatKv : Pass<"mica-fold-repeat-kv", "::mlir::func::FuncOp"> {
  let summary = "fold repeated key/value heads into attention";
  let description = [{
    `attention(q, repeat_kv(k), repeat_kv(v)) => attention(q, k, v)`: in attention, query head h reads key head h / R.

    ```mlir
    func.func @f(%q: tensor<?x4x8xf32>, %k: tensor<?x?x2x8xf32>, %v: tensor<?x?x2x8xf32>,
        %sequences: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x4x8xf32> {
      %r = mica.repeat_kv %k times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
      %s = mica.repeat_kv %v times 2 : tensor<?x?x2x8xf32> -> tensor<?x?x4x8xf32>
      %y = mica.attention %q, %r, %s at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
          : tensor<?x4x8xf32>, tensor<?x?x4x8xf32>, tensor<?x?x4x8xf32> -> tensor<?x4x8xf32>
      return %y : tensor<?x4x8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%q: tensor<?x4x8xf32>, %k: tensor<?x?x2x8xf32>, %v: tensor<?x?x2x8xf32>,
        %sequences: tensor<?xi32>, %positions: tensor<?xi32>) -> tensor<?x4x8xf32> {
      %y = mica.attention %q, %k, %v at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>) causal scale(0.35)
          : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32> -> tensor<?x4x8xf32>
      return %y : tensor<?x4x8xf32>
    }
    ```
  }];
}

def Shard : Pass<"mica-shard", "::mlir::ModuleOp"> {
  let summary = "partition a model for several ranks (tensor parallelism)";
  let description = [{
    `linear(x, w) => all_gather(linear(x, part of w))` on each of `ranks` processes, which run the same code on
    different parts of the weights. Matmuls are partitioned along their columns, never along K: each rank stores some
    rows of every matrix [N, K] and computes the corresponding columns of the result. Every number is computed by one
    rank, exactly as a single rank would compute it, so logits are bit-identical for any number of ranks.

    - Values are gathered where an op needs all columns: in a layer before o_proj, before the norm that follows, before
      down_proj, and at the end. Elementwise ops are applied to parts: a rank adds its part of the residual stream.
    - Attention is partitioned by heads: a rank has some key/value heads, their cache, and the query heads that read
      them. If there are fewer key/value heads than ranks, several ranks have the same one.
    - Linear attention is partitioned by heads of values, with the heads of keys that these read, and causal
      convolutions by channels. If one of them is given columns of all kinds, they are gathered, and each rank takes
      those of its heads.
    - Experts are partitioned internally: each rank has some columns of gate, up and down of every expert.
      `mica.moe_experts` becomes `mica.moe_gate_up` and `mica.moe_down`, because the inner activations are gathered in
      between. As without ranks, gate and up of an expert become one weight afterwards (`mica-fuse-gated-linear`).
    - Tables are partitioned by rows, as lm_head is, so that a table that is also lm_head's matrix is stored once.
    - Routers, norms of rows, heads of which there is only one, and matrices that are composed of several tensors (of
      Qwen3-Next) are replicated on all ranks.

    The pass fails at an op without a rule, and if heads cannot be distributed. It must run before weights are merged;
    `mica-to-fused=ranks=2` runs it after `mica-fold-repeat-kv`. With one rank it changes nothing.

    ```mlir
    // mica-opt --mica-shard=ranks=2
    mica.weight @up : tensor<128x32xf32>
    mica.weight @down : tensor<32x128xf32>
    func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
      %wu = mica.get_weight @up : tensor<128x32xf32>
      %wd = mica.get_weight @down : tensor<32x128xf32>
      %0 = mica.linear %x, %wu : tensor<?x32xf32>, tensor<128x32xf32> -> tensor<?x128xf32>
      %1 = mica.silu %0 : tensor<?x128xf32>
      %2 = mica.linear %1, %wd : tensor<?x128xf32>, tensor<32x128xf32> -> tensor<?x32xf32>
      %3 = mica.add %x, %2 : tensor<?x32xf32>
      return %3 : tensor<?x32xf32>
    }
    ```
    becomes
    ```mlir
    module attributes {mica.ranks = 2 : i64} {
      mica.weight @up shard <axis = 0, ranks = 2> : tensor<64x32xf32>
      mica.weight @down shard <axis = 0, ranks = 2> : tensor<16x128xf32>
      func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
        %wu = mica.get_weight @up : tensor<64x32xf32>
        %wd = mica.get_weight @down : tensor<16x128xf32>
        %0 = mica.linear %x, %wu : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
        %1 = mica.silu %0 : tensor<?x64xf32>
        %2 = mica.all_gather %1 ranks(2) : tensor<?x64xf32> -> tensor<?x128xf32>
        %3 = mica.linear %2, %wd : tensor<?x128xf32>, tensor<16x128xf32> -> tensor<?x16xf32>
        %4 = mica.all_slice %x ranks(2) : tensor<?x32xf32> -> tensor<?x16xf32>
        %5 = mica.add %4, %3 : tensor<?x16xf32>
        %6 = mica.all_gather %5 ranks(2) : tensor<?x16xf32> -> tensor<?x32xf32>
        return %6 : tensor<?x32xf32>
      }
    }
    ```
  }];
  let options = [Option<"ranks", "ranks", "int64_t", /*default=*/"2", "number of ranks">];
  let dependentDialects = ["::mica::MicaDialect"];
}

def FuseGatedLinear : Pass<"mica-fuse-gated-linear", "::mlir::ModuleOp"> {
  let summary = "fuse gate and up projections into one matmul";
  let description = [{
    `mul(activation(linear(x, g)), linear(x, u)) => gated_linear(x, gu)`, where gu holds g and u in alternating blocks
    of 64 rows; `moe_experts(x, g, up(u)) => moe_experts(x, gu)` likewise, expert by expert, and its first half for
    several ranks, `moe_gate_up(x, g, up(u))`. g and u are arguments of the function and have the same type; the two
    weights are combined at every call:

    ```mlir
    mica.weight @gate_proj.weight : tensor<72x32xf32>
    mica.weight @up_proj.weight : tensor<72x32xf32>
    func.func private @layer(%x: tensor<?x32xf32>, %g: tensor<72x32xf32>, %u: tensor<72x32xf32>) -> tensor<?x72xf32> {
      %a = mica.linear %x, %g : tensor<?x32xf32>, tensor<72x32xf32> -> tensor<?x72xf32>
      %b = mica.linear %x, %u : tensor<?x32xf32>, tensor<72x32xf32> -> tensor<?x72xf32>
      %s = mica.silu %a : tensor<?x72xf32>
      %y = mica.mul %s, %b : tensor<?x72xf32>
      return %y : tensor<?x72xf32>
    }
    func.func @main(%x: tensor<?x32xf32>) -> tensor<?x72xf32> {
      %g = mica.get_weight @gate_proj.weight : tensor<72x32xf32>
      %u = mica.get_weight @up_proj.weight : tensor<72x32xf32>
      %y = call @layer(%x, %g, %u) : (tensor<?x32xf32>, tensor<72x32xf32>, tensor<72x32xf32>) -> tensor<?x72xf32>
      return %y : tensor<?x72xf32>
    }
    ```
    becomes
    ```mlir
    mica.weight @gate_up_proj.weight from ["gate_proj.weight", "up_proj.weight"] interleave : tensor<256x32xf32>
    func.func private @layer(%x: tensor<?x32xf32>, %gu: tensor<256x32xf32>) -> tensor<?x72xf32> {
      %y = mica.gated_linear %x, %gu silu : tensor<?x32xf32>, tensor<256x32xf32> -> tensor<?x72xf32>
      return %y : tensor<?x72xf32>
    }
    func.func @main(%x: tensor<?x32xf32>) -> tensor<?x72xf32> {
      %gu = mica.get_weight @gate_up_proj.weight : tensor<256x32xf32>
      %y = call @layer(%x, %gu) : (tensor<?x32xf32>, tensor<256x32xf32>) -> tensor<?x72xf32>
      return %y : tensor<?x72xf32>
    }
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect"];
}

def MergeLinears : Pass<"mica-merge-linears", "::mlir::ModuleOp"> {
  let summary = "merge matmuls of the same rows";
  let description = [{
    `linear(x, a), linear(x, b), ... => split(linear(x, [a; b; ...]))` for weights that are arguments of the function,
    all with bias or all without; the weights are combined at every call:

    ```mlir
    mica.weight @q_proj.weight : tensor<32x32xf32>
    mica.weight @k_proj.weight : tensor<16x32xf32>
    func.func private @layer(%x: tensor<?x32xf32>, %wq: tensor<32x32xf32>, %wk: tensor<16x32xf32>)
        -> (tensor<?x32xf32>, tensor<?x16xf32>) {
      %q = mica.linear %x, %wq : tensor<?x32xf32>, tensor<32x32xf32> -> tensor<?x32xf32>
      %k = mica.linear %x, %wk : tensor<?x32xf32>, tensor<16x32xf32> -> tensor<?x16xf32>
      return %q, %k : tensor<?x32xf32>, tensor<?x16xf32>
    }
    func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
      %wq = mica.get_weight @q_proj.weight : tensor<32x32xf32>
      %wk = mica.get_weight @k_proj.weight : tensor<16x32xf32>
      %q, %k = call @layer(%x, %wq, %wk)
          : (tensor<?x32xf32>, tensor<32x32xf32>, tensor<16x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>)
      return %q : tensor<?x32xf32>
    }
    ```
    becomes
    ```mlir
    mica.weight @qk_proj.weight from ["q_proj.weight", "k_proj.weight"] concat : tensor<48x32xf32>
    func.func private @layer(%x: tensor<?x32xf32>, %w: tensor<48x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>) {
      %y = mica.linear %x, %w : tensor<?x32xf32>, tensor<48x32xf32> -> tensor<?x48xf32>
      %q, %k = mica.split %y : tensor<?x48xf32> -> tensor<?x32xf32>, tensor<?x16xf32>
      return %q, %k : tensor<?x32xf32>, tensor<?x16xf32>
    }
    func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
      %w = mica.get_weight @qk_proj.weight : tensor<48x32xf32>
      %q, %k = call @layer(%x, %w) : (tensor<?x32xf32>, tensor<48x32xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>)
      return %q : tensor<?x32xf32>
    }
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect"];
}

def FuseResidual : Pass<"mica-fuse-residual", "::mlir::func::FuncOp"> {
  let summary = "fuse residual additions into matmuls";
  let description = [{
    `add(r, linear(x, w)) => linear(x, w) residual(r)`, likewise for `moe_experts`. Several matmuls are chained:
    `add(r, add(a, b)) => b residual(a residual(r))`, which changes the order of f32 additions (within 1e-5 relative).

    ```mlir
    func.func @f(%x: tensor<?x64xf32>, %w: tensor<32x64xf32>, %r: tensor<?x32xf32>) -> tensor<?x32xf32> {
      %y = mica.linear %x, %w : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
      %z = mica.add %r, %y : tensor<?x32xf32>
      return %z : tensor<?x32xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<?x64xf32>, %w: tensor<32x64xf32>, %r: tensor<?x32xf32>) -> tensor<?x32xf32> {
      %z = mica.linear %x, %w residual(%r : tensor<?x32xf32>)
          : tensor<?x64xf32>, tensor<32x64xf32> -> tensor<?x32xf32>
      return %z : tensor<?x32xf32>
    }
    ```
  }];
}

def FuseQkvAppend : Pass<"mica-fuse-qkv-append", "::mlir::func::FuncOp"> {
  let summary = "fuse q/k norms, rope and both cache appends";
  let description = [{
    `q, k, v = split(qkv); rope(norm(q)), kv_append(rope(norm(k))), kv_append(v) => qkv_append(qkv, rope_table)`, with
    or without the norms. The two ropes must be identical, and the two appends must write the same layer and rows. Other
    parts of the split, such as the output gate of attention, remain parts of a split whose first part is qkv.

    ```mlir
    !cache = !mica.kv_cache<2 x 2 x 8 x f32>
    func.func @f(%qkv: tensor<?x64xf32>, %k0: !cache, %v0: !cache, %layer: index,
        %sequences: tensor<?xi32>, %positions: tensor<?xi32>) -> (tensor<?x4x8xf32>, !cache, !cache) {
      %q, %k, %v = mica.split %qkv : tensor<?x64xf32> -> tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>
      %qh = mica.split_heads %q : tensor<?x32xf32> to tensor<?x4x8xf32>
      %kh = mica.split_heads %k : tensor<?x16xf32> to tensor<?x2x8xf32>
      %vh = mica.split_heads %v : tensor<?x16xf32> to tensor<?x2x8xf32>
      %qr = mica.rope %qh, %positions half theta(1.0e+04) : tensor<?x4x8xf32>, tensor<?xi32>
      %kr = mica.rope %kh, %positions half theta(1.0e+04) : tensor<?x2x8xf32>, tensor<?xi32>
      %k1 = mica.kv_append %kr, %k0[%layer] at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>)
          : tensor<?x2x8xf32>, !cache
      %v1 = mica.kv_append %vh, %v0[%layer] at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>)
          : tensor<?x2x8xf32>, !cache
      return %qr, %k1, %v1 : tensor<?x4x8xf32>, !cache, !cache
    }
    ```
    becomes
    ```mlir
    !cache = !mica.kv_cache<2 x 2 x 8 x f32>
    func.func @f(%qkv: tensor<?x64xf32>, %k0: !cache, %v0: !cache, %layer: index,
        %sequences: tensor<?xi32>, %positions: tensor<?xi32>) -> (tensor<?x4x8xf32>, !cache, !cache) {
      %table = mica.rope_table %positions rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
      %qr, %k1, %v1 = mica.qkv_append %qkv, %table, %k0, %v0[%layer]
          at(%sequences, %positions : tensor<?xi32>, tensor<?xi32>) half
          : tensor<?x64xf32>, tensor<?x2x4xf32>, !cache, !cache -> tensor<?x4x8xf32>
      return %qr, %k1, %v1 : tensor<?x4x8xf32>, !cache, !cache
    }
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect"];
}

def HoistRopeTables : Pass<"mica-hoist-rope-tables", "::mlir::ModuleOp"> {
  let summary = "compute rope tables once per step, not once per layer";
  let description = [{
    `f(positions) { rope_table(positions) } => f(positions, table)`: the callers compute the table, one per distinct
    (positions, lengths, rotary_dim, theta, scaling), up to a function that is not called itself.

    ```mlir
    func.func private @layer(%positions: tensor<?xi32>) -> tensor<?x2x4xf32> {
      %t = mica.rope_table %positions rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
      return %t : tensor<?x2x4xf32>
    }
    func.func @main(%positions: tensor<?xi32>) -> tensor<?x2x4xf32> {
      %y = call @layer(%positions) : (tensor<?xi32>) -> tensor<?x2x4xf32>
      return %y : tensor<?x2x4xf32>
    }
    ```
    becomes
    ```mlir
    func.func private @layer(%positions: tensor<?xi32>, %t: tensor<?x2x4xf32>) -> tensor<?x2x4xf32> {
      return %t : tensor<?x2x4xf32>
    }
    func.func @main(%positions: tensor<?xi32>) -> tensor<?x2x4xf32> {
      %t = mica.rope_table %positions rotary_dim(8) theta(1.0e+04) : tensor<?xi32> -> tensor<?x2x4xf32>
      %y = call @layer(%positions, %t) : (tensor<?xi32>, tensor<?x2x4xf32>) -> tensor<?x2x4xf32>
      return %y : tensor<?x2x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect"];
}

def FuseCasts : Pass<"mica-fuse-casts", "::mlir::func::FuncOp"> {
  let summary = "fuse casts into the ops that produce their operand";
  let description = [{
    `cast(op(...)) => op(...)` with the narrower result type, where op is `rmsnorm`, `layernorm`, `attention`,
    `gated_linear`, `moe_gate_up`, `head_linear` or the queries of `qkv_append`, and nothing else reads the wide result;
    `cast(merge_heads(x)) => merge_heads(cast(x))` on the way.

    ```mlir
    func.func @f(%x: tensor<?x32xf32>, %w: tensor<32xf32>) -> tensor<?x32xbf16> {
      %n = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
      %b = mica.cast %n : tensor<?x32xf32> to tensor<?x32xbf16>
      return %b : tensor<?x32xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<?x32xf32>, %w: tensor<32xf32>) -> tensor<?x32xbf16> {
      %b = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xbf16>
      return %b : tensor<?x32xbf16>
    }
    ```
  }];
}

def InsertProbes : Pass<"mica-insert-probes", "::mlir::ModuleOp"> {
  let summary = "insert a probe after every op";
  let description = [{
    Inserts a `mica.probe` after every op with a result of f32 or bf16 rows. Probes are named after the op and its
    weight, with a number if that name is already used in the function, and have the layer index in layer functions.
    With `of=product-rows`, probes record the input rows of matmuls instead, named after the first op that uses them.
    Experts are split into `mica.moe_gate_up` and `mica.moe_down`, and a probe of the experts' ids precedes the probe of
    the rows between them.

    ```mlir
    func.func private @layer(%x: tensor<?x32xf32>, %layer: index) -> tensor<?x32xf32> {
      %y = mica.add %x, %x : tensor<?x32xf32>
      return %y : tensor<?x32xf32>
    }
    ```
    becomes
    ```mlir
    func.func private @layer(%x: tensor<?x32xf32>, %layer: index) -> tensor<?x32xf32> {
      %y = mica.add %x, %x : tensor<?x32xf32>
      %p = mica.probe %y "add" layer(%layer) : tensor<?x32xf32>
      return %p : tensor<?x32xf32>
    }
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect"];
  let options = [Option<"of", "of", "::mica::Probed", /*default=*/"::mica::Probed::Results", "what probes show",
                        [{::llvm::cl::values(
                          clEnumValN(::mica::Probed::Results, "results", "results of ops"),
                          clEnumValN(::mica::Probed::ProductRows, "product-rows", "rows that matrices multiply"))}]>];
}

// fused -> kernels ----------------------------------------------------------------------------------------------------

def SpecializePhases : Pass<"mica-specialize-phases", "::mlir::ModuleOp"> {
  let summary = "specialize functions by the number of rows";
  let description = [{
    `f => f_small, f_medium, f_large` for every function, by the number of rows. `f_small` has the attribute
    `mica.max_rows = small_batch`: it is called for at most that many rows, as in decode. `f_medium` has `mica.max_rows
    = gemm_threshold`: mostly rows of one prompt, but few enough that generated kernels are faster. `f_large` is for
    more. The pass records both limits on the module (`mica.small_batch`, `mica.gemm_threshold`); limits that a module
    already has take precedence. If the GEMM threshold is not larger than `small_batch`, both are set to the threshold
    and there is no `f_medium`.

    The arithmetic of a row depends on its role, never on the number of rows in its call. In modules with
    block-quantized weights the roles are computed differently, so each has its own functions: `f => f_decode_small,
    f_decode_medium, f_decode_large` with `mica.row_role = "decode"` for sampled and drafted tokens, and
    `f_prompt_medium, f_prompt_large` with `mica.row_role = "prompt"`, where `f_prompt_medium` also handles short
    prompts. If activations of prompts have the type of those in decode (`exact=int16`, see `mica-assign-prompt-rows`),
    the roles are computed alike, and share functions.

    The functions of a multi-token prediction head, which have `mica.row_role = "draft"`, keep that role: `f => f_small,
    f_medium, f_large`.

    ```mlir
    func.func private @layer(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
      return %x : tensor<?x32xf32>
    }
    func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
      %y = call @layer(%x) : (tensor<?x32xf32>) -> tensor<?x32xf32>
      return %y : tensor<?x32xf32>
    }
    ```
    becomes
    ```mlir
    module attributes {mica.gemm_threshold = 32 : i64, mica.small_batch = 16 : i64} {
    func.func private @layer_small(%x: tensor<?x32xf32>) -> tensor<?x32xf32> attributes {mica.max_rows = 16 : i64} {
      return %x : tensor<?x32xf32>
    }
    func.func @main_small(%x: tensor<?x32xf32>) -> tensor<?x32xf32> attributes {mica.max_rows = 16 : i64} {
      %y = call @layer_small(%x) : (tensor<?x32xf32>) -> tensor<?x32xf32>
      return %y : tensor<?x32xf32>
    }
    func.func private @layer_medium(%x: tensor<?x32xf32>) -> tensor<?x32xf32> attributes {mica.max_rows = 32 : i64} {
      return %x : tensor<?x32xf32>
    }
    func.func @main_medium(%x: tensor<?x32xf32>) -> tensor<?x32xf32> attributes {mica.max_rows = 32 : i64} {
      %y = call @layer_medium(%x) : (tensor<?x32xf32>) -> tensor<?x32xf32>
      return %y : tensor<?x32xf32>
    }
    func.func private @layer_large(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
      return %x : tensor<?x32xf32>
    }
    func.func @main_large(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
      %y = call @layer_large(%x) : (tensor<?x32xf32>) -> tensor<?x32xf32>
      return %y : tensor<?x32xf32>
    }
    }
    ```
  }];
  let options = [Option<"gemmThreshold", "gemm-threshold", "int64_t", "PhaseRows().gemmThreshold",
                        "maximum number of rows for generated kernels, unless set by the module">,
                 Option<"smallBatch", "small-batch", "int64_t", "PhaseRows().smallBatch",
                        "maximum number of rows of `_small` functions, unless set by the module">,
                 Option<"exact", "exact", "::mica::ExactRows", /*default=*/"::mica::ExactRows::BF16",
                        "type of rows that are exact", [{::mica::exactRowsValues()}]>];
}

def AssignPromptRows : Pass<"mica-assign-prompt-rows", "::mlir::ModuleOp"> {
  let summary = "assign the activation type of prompts";
  let description = [{
    Activations multiplied by block-quantized weights are `!mica.int_rows`, which suits decode: it is memory-bound, so
    the precision costs almost nothing. Prefill is compute-bound: in functions whose `mica.row_role` is `prompt`, these
    activations become bf16, or f32 if bf16 matmuls are slow on the target (`exact=f32`), and kernels expand the blocks
    to the same type. If 16-bit integers are multiplied faster than f32, the type is unchanged (`exact=int16`). The
    pipelines of a backend select the type by the module's target, unless an option does. These types are called exact
    because they lose little: bf16 rounds activations and expanded weights to 8 significant bits. In a module with
    `mica.prompt_rows = "int8"` (`compile --rows int8`) activations become integers of 8 bits. Run `mica-fuse-casts`
    afterwards, because more ops can then round their result to bf16.

    ```mlir
    // mica-opt --mica-assign-prompt-rows
    !rows = !mica.int_rows<bits = 16, group = 32>
    func.func private @layer_prompt_large(%x: tensor<?x32xf32>, %w: tensor<16x32x!mica.block<q8_0>>) -> tensor<?x16xf32>
        attributes {mica.row_role = "prompt"} {
      %c = mica.cast %x : tensor<?x32xf32> to tensor<?x32x!rows>
      %y = mica.linear %c, %w : tensor<?x32x!rows>, tensor<16x32x!mica.block<q8_0>> -> tensor<?x16xf32>
      return %y : tensor<?x16xf32>
    }
    ```
    becomes
    ```mlir
    func.func private @layer_prompt_large(%x: tensor<?x32xf32>, %w: tensor<16x32x!mica.block<q8_0>>) -> tensor<?x16xf32>
        attributes {mica.row_role = "prompt"} {
      %c = mica.cast %x : tensor<?x32xf32> to tensor<?x32xbf16>
      %y = mica.linear %c, %w : tensor<?x32xbf16>, tensor<16x32x!mica.block<q8_0>> -> tensor<?x16xf32>
      return %y : tensor<?x16xf32>
    }
    ```
  }];
  let options = [Option<"exact", "exact", "::mica::ExactRows", /*default=*/"::mica::ExactRows::BF16",
                        "type of rows that are exact", [{::mica::exactRowsValues()}]>];
}

def RollLayers : Pass<"mica-roll-layers", "::mlir::ModuleOp"> {
  let summary = "roll the calls of layers into a loop";
  let description = [{
    Consecutive calls of one layer function, for layers i, i + 1, ..., become a loop that carries the values passed from
    one call to the next; `mica.select_weight` selects the weights of an iteration. If functions alternate, such as
    those of layers with and without a window, an iteration calls a whole period of them. Among periods of up to 16
    calls, the pass selects the one that rolls the most calls, and the shortest of these.

    If functions follow no such pattern, such as those of layers whose matrices are stored in different formats, and
    periods would leave more than four calls of each, the calls become a loop of rounds: a round calls every function,
    in an inner loop, for as many consecutive layers as use it. `mica.index_table` gives the first and last layer, and
    their indices in the cache. The size of the IR then depends on the number of layer types, not of layers. Layers that
    pass on a second tensor are not rolled.

    ```mlir
    mica.weight @w0 : tensor<32xf32>
    mica.weight @w1 : tensor<32xf32>
    func.func private @layer(%x: tensor<?x32xf32>, %layer: index, %w: tensor<32xf32>) -> tensor<?x32xf32> {
      %y = mica.rmsnorm %x, %w eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>
      return %y : tensor<?x32xf32>
    }
    func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
      %c0 = arith.constant 0 : index
      %w0 = mica.get_weight @w0 : tensor<32xf32>
      %a = call @layer(%x, %c0, %w0) : (tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
      %c1 = arith.constant 1 : index
      %w1 = mica.get_weight @w1 : tensor<32xf32>
      %b = call @layer(%a, %c1, %w1) : (tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
      return %b : tensor<?x32xf32>
    }
    ```
    becomes
    ```mlir
    ...
    func.func @main(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    %b = scf.for %i = %c0 to %c2 step %c1 iter_args(%y = %x) -> (tensor<?x32xf32>) {
    %w = mica.select_weight [@w0, @w1][%i] : tensor<32xf32>
    %z = func.call @layer(%y, %i, %w) : (tensor<?x32xf32>, index, tensor<32xf32>) -> tensor<?x32xf32>
    scf.yield %z : tensor<?x32xf32>
    }
    return %b : tensor<?x32xf32>
    ```
  }];
  let dependentDialects = ["::mica::MicaDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

#endif // MICA_PASSES
