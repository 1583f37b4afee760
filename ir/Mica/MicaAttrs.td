// Attributes and types of the `mica` dialect.

#ifndef MICA_ATTRS
#define MICA_ATTRS

include "MicaDialect.td"
include "QuantizedInterface.td"
include "StateInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Mica_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mica";
  let genSpecializedAttr = 0;
}

class Mica_EnumAttr<EnumAttrInfo info, string mnemonic> : EnumAttr<Mica_Dialect, info, mnemonic> {
  let assemblyFormat = "$value";
}

def Mica_Pairing : Mica_Enum<"Pairing", "which elements of a head rope rotates together", [
  I32EnumAttrCase<"Half", 0, "half">,
  I32EnumAttrCase<"Interleaved", 1, "interleaved">]>;
def Mica_PairingAttr : Mica_EnumAttr<Mica_Pairing, "pairing">;

def Mica_NormRounding : Mica_Enum<"NormRounding",
    "where rmsnorm rounds to the type of x: before the gain (Llama, Qwen, MiniMind 1 and 2) or after it (MiniMind 3)", [
  I32EnumAttrCase<"BeforeGain", 0, "before_gain">,
  I32EnumAttrCase<"AfterGain", 1, "after_gain">]>;
def Mica_NormRoundingAttr : Mica_EnumAttr<Mica_NormRounding, "norm_rounding">;

def Mica_Activation : Mica_Enum<"Activation", "the nonlinearity of a feed-forward network", [
  I32EnumAttrCase<"Silu", 0, "silu">,
  I32EnumAttrCase<"Gelu", 1, "gelu">,
  I32EnumAttrCase<"GeluTanh", 2, "gelu_tanh">,
  I32EnumAttrCase<"Relu", 3, "relu">,
  I32EnumAttrCase<"Relu2", 4, "relu2">,
  I32EnumAttrCase<"QuickGelu", 5, "quick_gelu">]>;
def Mica_ActivationAttr : Mica_EnumAttr<Mica_Activation, "activation">;

def Mica_Scoring : Mica_Enum<"Scoring", "how a gate turns its logits into scores", [
  I32EnumAttrCase<"Softmax", 0, "softmax">,
  I32EnumAttrCase<"Sigmoid", 1, "sigmoid">]>;
def Mica_ScoringAttr : Mica_EnumAttr<Mica_Scoring, "scoring">;

def Mica_GroupScoring : Mica_Enum<"GroupScoring", "how good a group of experts is", [
  I32EnumAttrCase<"Best", 0, "best">,
  I32EnumAttrCase<"BestTwo", 1, "best_two">]>;
def Mica_GroupScoringAttr : Mica_EnumAttr<Mica_GroupScoring, "group_scoring">;

def Mica_MaskKind : Mica_Enum<"MaskKind", "which positions attention sees", [
  I32EnumAttrCase<"Causal", 0, "causal">,
  I32EnumAttrCase<"Full", 1, "full">]>;
def Mica_MaskKindAttr : Mica_EnumAttr<Mica_MaskKind, "mask">;

def Mica_Compose : Mica_Enum<"Compose", "how a weight is made of several tensors of the checkpoint", [
  I32EnumAttrCase<"Concat", 0, "concat">,
  I32EnumAttrCase<"Stack", 1, "stack">,
  I32EnumAttrCase<"Interleave", 2, "interleave">]>;
def Mica_ComposeAttr : Mica_EnumAttr<Mica_Compose, "compose">;

def Mica_KernelKind : Mica_Enum<"KernelKind", "the kernel of a product", [
  I32EnumAttrCase<"Generated", 0, "generated">,
  I32EnumAttrCase<"OneDnn", 1, "onednn">]>;
def Mica_KernelKindAttr : Mica_EnumAttr<Mica_KernelKind, "kernel">;

def Mica_KvKind : Mica_Enum<"KvKind", "what a cache holds", [
  I32EnumAttrCase<"Keys", 0, "keys">,
  I32EnumAttrCase<"Values", 1, "values">]>;

class Mica_Attr<string name, string attrMnemonic> : AttrDef<Mica_Dialect, name> {
  let mnemonic = attrMnemonic;
  let genVerifyDecl = 1;
}

def Mica_LinearScalingAttr : Mica_Attr<"LinearScaling", "linear_scaling"> {
  let summary = "rope scaling: every frequency divided by `factor`";
  let parameters = (ins "::mlir::FloatAttr":$factor);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Mica_YarnScalingAttr : Mica_Attr<"YarnScaling", "yarn_scaling"> {
  let summary = "rope scaling of YaRN (Peng et al. 2023, arXiv:2309.00071)";
  let description = [{
    With `dim(b) = D ln(original_context / (2 pi b)) / (2 ln theta)`, `low = max(floor(dim(beta_fast)), 0)`,
    `high = min(ceil(dim(beta_slow)), high_limit)` and `ramp_i = clamp((i - low) / max(high - low, 0.001), 0, 1)`,
    frequency i is multiplied by `1 - ramp_i + ramp_i / factor`; cos and sin are multiplied by `attention_factor`.
    `high_limit` is D/2 - 1 in MiniMind and D - 1 in transformers. `truncate = false` leaves out floor and ceil.
  }];
  let parameters = (ins "::mlir::FloatAttr":$factor, "::mlir::FloatAttr":$beta_fast, "::mlir::FloatAttr":$beta_slow,
                        "::mlir::FloatAttr":$attention_factor, "int64_t":$original_context, "int64_t":$high_limit,
                        DefaultValuedParameter<"bool", "true">:$truncate);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Mica_Llama3ScalingAttr : Mica_Attr<"Llama3Scaling", "llama3_scaling"> {
  let summary = "rope scaling of Llama 3.1: long wavelengths are divided by `factor`, short ones kept";
  let description = [{
    With `wavelength = 2 pi / f`: above `original_context / low_freq_factor` the frequency f becomes f / factor, below
    `original_context / high_freq_factor` it stays, and between both it is interpolated with
    `s = (context / wavelength - low) / (high - low)`: `(1 - s) f / factor + s f`.
  }];
  let parameters = (ins "::mlir::FloatAttr":$factor, "::mlir::FloatAttr":$low_freq_factor,
                        "::mlir::FloatAttr":$high_freq_factor, "int64_t":$original_context);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Mica_LongRopeScalingAttr : Mica_Attr<"LongRopeScaling", "longrope_scaling"> {
  let summary = "rope scaling with factors for each pair (LongRoPE, Ding et al. 2024, arXiv:2402.13753)";
  let description = [{
    Frequency i is divided by `short_factors[i]` in a sequence of up to `original_context` positions and by
    `long_factors[i]` in a longer one; cos and sin are multiplied by `attention_factor`. The frequencies of a row follow
    the length of its sequence, an operand of the op.
  }];
  let parameters = (ins "::mlir::DenseF64ArrayAttr":$short_factors, "::mlir::DenseF64ArrayAttr":$long_factors,
                        "::mlir::FloatAttr":$attention_factor, "int64_t":$original_context);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Mica_DynamicScalingAttr : Mica_Attr<"DynamicScaling", "dynamic_scaling"> {
  let summary = "rope scaling whose theta grows with the length of the sequence (NTK-aware, dynamic)";
  let description = [{
    In a sequence of L positions theta becomes `theta * s^(D / (D - 2))` with D = rotary_dim and
    `s = factor * max(L, original_context) / original_context - (factor - 1)`: up to `original_context` positions
    nothing changes. The frequencies of a row follow the length of its sequence, an operand of the op.
  }];
  let parameters = (ins "::mlir::FloatAttr":$factor, "int64_t":$original_context);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Mica_RopeScaling : AnyAttrOf<[Mica_LinearScalingAttr, Mica_YarnScalingAttr, Mica_Llama3ScalingAttr,
                                  Mica_LongRopeScalingAttr, Mica_DynamicScalingAttr],
                                 "a rope scaling">;

def Mica_SliceAttr : Mica_Attr<"Slice", "slice"> {
  let summary = "a part of a tensor of the checkpoint";
  let description = [{
    It is a source of a weight that is not a whole tensor. What is said of the tensor applies in this order: an `entry`
    of its first axis; the matrix `transposed`; `rows` first to last (exclusive) of every period; these rows
    `as_columns`, which transposes the result. At least one of the first three is there.

    ```
    #mica.slice<"qkv", rows 1 to 3 of 6>:       of 12 rows those numbered 1 2 7 8
    #mica.slice<"up", entry 3, transposed>:     up[3]^T
    ```
  }];
  let parameters = (ins StringRefParameter<"its name">:$tensor, "std::optional<int64_t>":$entry, "bool":$transposed,
                        AttrParameter<"int64_t", "of every period">:$first, AttrParameter<"int64_t", "exclusive">:$last,
                        AttrParameter<"int64_t", "0: all rows">:$period, "bool":$as_columns);
  let hasCustomAssemblyFormat = 1;
}

def Mica_Source : AnyAttrOf<[StrAttr, Mica_SliceAttr], "the name of a tensor or a #mica.slice of one">;
def Mica_SourceArrayAttr : TypedArrayAttrBase<Mica_Source, "tensors of the checkpoint and parts of such">;

def Mica_PackedLayoutAttr : Mica_Attr<"PackedLayout", "packed"> {
  let summary = "a matrix [N, K] stored in blocks of columns of the product";
  let description = [{
    It is the encoding of a weight's tensor type:
    `tensor<64x32xbf16, #mica.packed<columns = 64, depth = 2, k_block = 32>>` stores the matrix [N, K] as [ceil(N /
    64)][ceil(K / 32) * 32 / 2][64][2], zero where it is padded. Groups of `depth` values along K stand beside each
    other, because a dot-product instruction consumes them together (1 for f32, 2 for bf16).

    ```
    depth = 2, columns = 4, N = 4, K = 4:   row n of W is w[n][0..3]
      memory: w00 w01 w10 w11 w20 w21 w30 w31   w02 w03 w12 w13 w22 w23 w32 w33
    ```
    It is the layout that oneDNN calls `BA16a64b` (f32) and `BA16a64b2a` (bf16), so that one packed copy serves its
    products and the generated kernels.
    `!mica.block` stores, for 64 rows, each block along K as a header (scales [64], offsets [64]) and, for every 32
    elements, a chunk: sub-scales [groups][64], sub-offsets [groups][64], then the lines of the planes of codes. A
    quad are four neighbors along K. A plane of w bits has w lines [64][4], and quad q of the chunk is in line
    q / (8 / w), w * (q mod (8 / w)) bits up. Lines are in the order in which quads need them, a line of the high
    plane before one of the low: of `q6_k` high 0, low 0, low 1, high 1, low 2, low 3. So a block of `q4_k` takes
    4.625 bits per element, where a file has 4.5: its sub-scales become bytes.
  }];
  let parameters = (ins "int64_t":$columns, "int64_t":$depth, "int64_t":$k_block);
  let assemblyFormat = "`<` struct(params) `>`";
}

/// The methods of the interface are in QuantizedTypes.cpp and RoundToIntegers.cpp.
class Mica_QuantizedType<string name> : TypeDef<Mica_Dialect, name,
    [DeclareTypeInterfaceMethods<Mica_QuantizedElementType>]>;

def Mica_Int8Type : Mica_QuantizedType<"Int8"> {
  let mnemonic = "int8";
  let summary = "an element of a cached key or value: 8-bit integers with one scale";
  let description = [{
    In `!mica.kv_cache<5 x 4 x 8 x !mica.int8>` and `tensor<?x?x4x8x!mica.int8>`, keys or values that are read from it,
    a row is one head at one position: `x[i] = scale * q[i]` with integers q in [-127, 127] and
    `scale = max_i |x[i]| / 127` in f32; q is rounded to nearest, ties to even. A row of zeros has the scale 0; one that
    holds an infinity or NaN has such a scale and integers 0, so that all of it reads as NaN. Rows are quantized when
    they are appended. Weights and activations are of `!mica.block` and `!mica.int_rows` instead.
  }];
}

def Mica_BlockType : Mica_QuantizedType<"Block"> {
  let mnemonic = "block";
  let summary = "an element of rows that are stored in blocks of a format";
  let description = [{
    `tensor<64x512x!mica.block<q4_k>>` holds a matrix whose rows are blocks along the last axis: codes of a few bits, a
    scale and perhaps an offset per block, and perhaps integers that scale them for each group of 16 or 32 elements.
    Element i of a block is `scale * scales[i / group] * level(code[i]) + sign * offset * offsets[i / group]`, in f32.
    The sign is -1 for `q2_k`, `q4_k`, `q5_k` and `int4_g32`, else 1. `ir/Quantize/BlockFormats.h` describes every
    format; docs/gguf.md has a table. Names are those of GGUF files (`q8_0`, `q4_k`, ...), whose blocks a weight holds
    bit for bit. `int8_g32`, `int6_g32` and `int4_g32` are Mica's own, quantized from numbers.

    Rows that multiply such a weight are of `!mica.int_rows`, of bf16 or of f32. With rows of bf16 the elements of the
    weight are rounded to bf16 as well.

    ```
    q8_0, elements = 4 for once:   scale 0.5, codes 1 2 -3 4   are   0.5 1 -1.5 2
    ```
  }];
  let parameters = (ins "const ::mica::BlockFormat *":$format);
  let hasCustomAssemblyFormat = 1;
}

def Mica_IntRowsType : Mica_QuantizedType<"IntRows"> {
  let mnemonic = "int_rows";
  let summary = "an element of rows of activations that are integers, with a scale for each group";
  let description = [{
    In `tensor<?x64x!mica.int_rows<limbs = 2, group = 32>>` every group of 32 elements along the last axis (and what is
    left at the end) is `x[i] = scale * q[i]` with `scale = max_i |x[i]| / limit` in f32 and integers q in
    [-limit, limit], rounded to nearest, ties to even. With one limb of 8 bits the limit is 127, with two it is 32639:
    q is `256 * high + low`, both signed bytes. A group of zeros has the scale 0; one that holds an infinity or NaN has
    such a scale.

    A product with a weight in blocks sums integers exactly within a group of either side, and adds these sums, times
    the scales, in f32, in the order of K.

    ```
    group = 4 for once, limbs = 1, a row 1 2 3 4 0.5 0.25 0 -0.5:
        scales 4/127 and 0.5/127, integers 32 64 95 127   127 64 0 -127
    ```
  }];
  let parameters = (ins "int64_t":$limbs, "int64_t":$group);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Mica_KvLayoutAttr : Mica_Attr<"KvLayout", "kv_layout"> {
  let summary = "the memory layout of a cache";
  let description = [{
    Positions are stored in blocks of `block`. With D' = head_dim rounded up to 16, a block of keys is stored as [D' /
    depth][block][depth], so that a vector holds the same elements of neighboring positions; a block of values is stored
    as [block / depth][D'][depth], so that a vector holds the elements of one position. `depth` values are beside each
    other, because a dot-product instruction consumes them together (1 for f32, 2 for bf16, 4 for integers of 8 bits). A
    cache of keys whose first elements are the values as well is stored as keys; attention transposes its blocks as it
    reads them. The integers of a block are followed by the scales of its positions, [block] in f32.

    ```
    block = 2, D' = 4, depth = 2:   k[position][element], v[position][element]
      keys:    k00 k01 k10 k11   k02 k03 k12 k13
      values:  v00 v10 v01 v11   v02 v12 v03 v13
    ```
  }];
  let parameters = (ins EnumParameter<Mica_KvKind>:$kind, "int64_t":$block, "int64_t":$depth);
  let assemblyFormat = "`<` $kind `,` struct($block, $depth) `>`";
}

def Mica_AttentionTilingAttr : Mica_Attr<"AttentionTiling", "attention_tiling"> {
  let summary = "the tiling of attention";
  let description = [{
    A task is a key/value head and a tile of up to `rows` consecutive rows; rows of one sequence read its keys and
    values together. Where many query heads share a key/value head, `heads` of them make a task; without it all. The
    positions that a row sees are cut into chunks of `chunk` positions (or of the least multiple that makes 16 chunks or
    fewer), each with a softmax of its own; chunks are combined in their order, whatever the tile. With `split`, for
    tiles of one row, chunks are tasks of their own.

    ```
    chunk = 512, a row at position 1300:   [0, 512) [512, 1024) [1024, 1301)
            split:  three tasks per head, then one that combines them;  else: one task takes them in order
    ```
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$chunk, "bool":$split,
                        DefaultValuedParameter<"int64_t", "0">:$heads);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Mica_KvCacheType : TypeDef<Mica_Dialect, "KvCache", [Mica_SequenceState]> {
  let mnemonic = "kv_cache";
  let summary = "the keys or the values of all positions seen so far";
  let description = [{
    `!mica.kv_cache<5 x 4 x 8 x f32>` holds 5 layers of 4 key/value heads of 8 elements. The number of sequences and of
    positions is dynamic: as a tensor it would be `tensor<5x?x?x4x8xf32>`. The elements are f32, bf16 or `!mica.int8`,
    of which every head at every position has a scale of its own: a head of 64 elements takes 68 bytes where bf16 takes
    128. Stage `kernels` adds the physical layout.

    `!mica.kv_cache<5 x 4 x 8 x f32 window(128)>` is for layers whose attention has a window of at most 128 positions:
    of a sequence, only the last 128 positions before any row that is still to come have to be there. Values do not
    depend on it, because the verifiers of all stages refuse an attention that looks further back; a program needs
    memory for the window instead of the whole context, see [state.md](state.md). Layers of one model may have caches of
    different types: each function takes those of its layers, and the index of a layer counts the layers of its cache.
  }];
  let parameters = (ins "int64_t":$layers, "int64_t":$heads, "int64_t":$headDim, "::mlir::Type":$elementType,
                        DefaultValuedParameter<"int64_t", "0">:$window,
                        OptionalParameter<"::mica::KvLayoutAttr">:$layout);
  let assemblyFormat = [{
    `<` $layers `x` $heads `x` $headDim `x` $elementType (`window` `(` $window^ `)`)? (`,` $layout^)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    // The same cache but for what is given.
    KvCacheType withLayout(::mica::KvLayoutAttr layout) {
      return get(getContext(), getLayers(), getHeads(), getHeadDim(), getElementType(), getWindow(), layout);
    }
    KvCacheType withHeads(int64_t heads, int64_t headDim) {
      return get(getContext(), getLayers(), heads, headDim, getElementType(), getWindow(), getLayout());
    }
    /// [layers, sequences (dynamic), heads, blocks of positions (dynamic), elements of a block]; needs a layout. Blocks
    /// of integers are bytes: the scales are among them.
    ::llvm::SmallVector<int64_t> getPhysicalShape();
    /// What a block of integers holds before the scale of its position `inBlock`, in bytes; needs a layout.
    int64_t getScaleOffset(int64_t inBlock);
    // See SequenceState.
    ::mlir::RankedTensorType getPhysicalType();
    ::llvm::SmallVector<int64_t> getRowShape() { return {getHeads(), getHeadDim()}; }
    int64_t getBytesPerPosition();
    int64_t getSlots() { return 0; }
    int64_t getBytesPerSequence() { return 0; }
    int64_t getPositionBlock() { return getLayout().getBlock(); }
    ::mlir::Type withElementType(::mlir::Type elementType) {
      return get(getContext(), getLayers(), getHeads(), getHeadDim(), elementType, getWindow(), getLayout());
    }
    ::llvm::StringRef getContentName();
  }];
}

def Mica_RollingStateType : TypeDef<Mica_Dialect, "RollingState", [Mica_SequenceState]> {
  let mnemonic = "rolling_state";
  let summary = "the last inputs of a causal convolution";
  let description = [{
    `!mica.rolling_state<10 x 64 x f32 window(3)>` holds, of 10 layers, rows of 64 channels. An op that updates it reads
    the rows of the last 3 positions, its own included; those further back have no influence on what follows. As a
    tensor that kept all positions it would be `tensor<10x?x?x64xf32>`, which is what the interpreter has. It is always
    f32.

    In memory it is a ring, `tensor<10x?x64x64xf32>`: layers, sequences, 64 slots, channels. The row of position p is in
    slot p mod 64, so that a sequence takes the same memory however long it is, and its last `64 - window + 1`
    positions can be taken back, see [state.md](state.md).
  }];
  let parameters = (ins "int64_t":$layers, "int64_t":$channels, "::mlir::Type":$elementType, "int64_t":$window);
  let assemblyFormat = "`<` $layers `x` $channels `x` $elementType `window` `(` $window `)` `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Slots of the ring of a sequence.
    static constexpr int64_t kSlots = 64;
    // See SequenceState.
    ::mlir::RankedTensorType getPhysicalType();
    ::llvm::SmallVector<int64_t> getRowShape() { return {getChannels()}; }
    int64_t getBytesPerPosition() { return 0; }
    int64_t getSlots() { return kSlots; }
    int64_t getBytesPerSequence();
    int64_t getPositionBlock() { return 0; }
    ::mlir::Type withElementType(::mlir::Type) { return *this; }
    ::llvm::StringRef getContentName() { return "conv_state"; }
  }];
}

#endif // MICA_ATTRS
