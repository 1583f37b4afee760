// Attributes and types of the `mica` dialect.

#ifndef MICA_ATTRS
#define MICA_ATTRS

include "MicaDialect.td"
include "QuantizedInterface.td"
include "RopeInterface.td"
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
    "where rmsnorm rounds to the type of x: before (Llama, Qwen 3) or after (Gemma, gpt-oss) the weight", [
  I32EnumAttrCase<"BeforeWeight", 0, "before_weight">,
  I32EnumAttrCase<"AfterWeight", 1, "after_weight">]>;
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

def Mica_GroupScoring : Mica_Enum<"GroupScoring", "how the score of a group of experts is computed", [
  I32EnumAttrCase<"Best", 0, "best">,
  I32EnumAttrCase<"BestTwo", 1, "best_two">]>;
def Mica_GroupScoringAttr : Mica_EnumAttr<Mica_GroupScoring, "group_scoring">;

def Mica_MaskKind : Mica_Enum<"MaskKind", "which positions a token attends to", [
  I32EnumAttrCase<"Causal", 0, "causal">,
  I32EnumAttrCase<"Full", 1, "full">]>;
def Mica_MaskKindAttr : Mica_EnumAttr<Mica_MaskKind, "mask">;

def Mica_Compose : Mica_Enum<"Compose", "how a weight is composed of several tensors of the checkpoint", [
  I32EnumAttrCase<"Concat", 0, "concat">,
  I32EnumAttrCase<"Stack", 1, "stack">,
  I32EnumAttrCase<"Interleave", 2, "interleave">]>;
def Mica_ComposeAttr : Mica_EnumAttr<Mica_Compose, "compose">;

def Mica_KernelKind : Mica_Enum<"KernelKind", "the kernel of a matmul", [
  I32EnumAttrCase<"Generated", 0, "generated">,
  I32EnumAttrCase<"OneDnn", 1, "onednn">]>;
def Mica_KernelKindAttr : Mica_EnumAttr<Mica_KernelKind, "kernel">;

def Mica_KvKind : Mica_Enum<"KvKind", "what a cache holds", [
  I32EnumAttrCase<"Keys", 0, "keys">,
  I32EnumAttrCase<"Values", 1, "values">]>;

class Mica_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<Mica_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
  let genVerifyDecl = 1;
}

/// A kind of rope scaling, which defines these `methods` of the interface; RopeScaling.cpp has them.
class Mica_Scaling<string name, string kind, list<string> methods>
    : Mica_Attr<name # "Scaling", kind # "_scaling", [DeclareAttrInterfaceMethods<Mica_RopeScalingAttr, methods>]> {
  let assemblyFormat = "`<` struct(params) `>`";
}

def Mica_LinearScalingAttr : Mica_Scaling<"Linear", "linear", ["scaleFrequency"]> {
  let summary = "rope scaling: every frequency divided by `factor`";
  let parameters = (ins "::mlir::FloatAttr":$factor);
}

def Mica_YarnScalingAttr : Mica_Scaling<"Yarn", "yarn", ["scaleFrequency", "getAmplitude", "getExtendedContext"]> {
  let summary = "rope scaling of YaRN (Peng et al. 2023, arXiv:2309.00071)";
  let description = [{
    With `dim(b) = D ln(original_context / (2 pi b)) / (2 ln theta)`, `low = max(floor(dim(beta_fast)), 0)`,
    `high = min(ceil(dim(beta_slow)), high_limit)` and `ramp_i = clamp((i - low) / max(high - low, 0.001), 0, 1)`,
    frequency i is multiplied by `1 - ramp_i + ramp_i / factor`; cos and sin are multiplied by `attention_factor`.
    `high_limit` is D/2 - 1 in MiniMind and D - 1 in transformers. `truncate = false` omits floor and ceil.
  }];
  let parameters = (ins "::mlir::FloatAttr":$factor, "::mlir::FloatAttr":$beta_fast, "::mlir::FloatAttr":$beta_slow,
                        "::mlir::FloatAttr":$attention_factor, "int64_t":$original_context, "int64_t":$high_limit,
                        DefaultValuedParameter<"bool", "true">:$truncate);
}

def Mica_Llama3ScalingAttr : Mica_Scaling<"Llama3", "llama3", ["scaleFrequency"]> {
  let summary = "rope scaling of Llama 3.1: long wavelengths are divided by `factor`, short ones kept";
  let description = [{
    With `wavelength = 2 pi / f`: above `original_context / low_freq_factor` the frequency f becomes f / factor, below
    `original_context / high_freq_factor` it is unchanged, and in between it is interpolated with
    `s = (context / wavelength - low) / (high - low)`: `(1 - s) f / factor + s f`.
  }];
  let parameters = (ins "::mlir::FloatAttr":$factor, "::mlir::FloatAttr":$low_freq_factor,
                        "::mlir::FloatAttr":$high_freq_factor, "int64_t":$original_context);
}

def Mica_LongRopeScalingAttr
    : Mica_Scaling<"LongRope", "longrope", ["scaleFrequency", "getAmplitude", "getLengthThreshold", "verifyPairs"]> {
  let summary = "rope scaling with factors for each pair (LongRoPE, Ding et al. 2024, arXiv:2402.13753)";
  let description = [{
    Frequency i is divided by `short_factors[i]` in a sequence of up to `original_context` positions and by
    `long_factors[i]` in a longer one; cos and sin are multiplied by `attention_factor`. The frequencies of a row depend
    on the length of its sequence, an operand of the op.
  }];
  let parameters = (ins "::mlir::DenseF64ArrayAttr":$short_factors, "::mlir::DenseF64ArrayAttr":$long_factors,
                        "::mlir::FloatAttr":$attention_factor, "int64_t":$original_context);
}

def Mica_DynamicScalingAttr
    : Mica_Scaling<"Dynamic", "dynamic", ["scaleTheta", "getLengthThreshold", "getThetaGrowth", "verifyPairs"]> {
  let summary = "rope scaling whose theta grows with the sequence length (dynamic NTK-aware scaling)";
  let description = [{
    In a sequence of L positions theta becomes `theta * s^(D / (D - 2))` with D = rotary_dim and
    `s = factor * max(L, original_context) / original_context - (factor - 1)`: up to `original_context` positions, theta
    is unchanged. The frequencies of a row depend on the length of its sequence, an operand of the op.
  }];
  let parameters = (ins "::mlir::FloatAttr":$factor, "int64_t":$original_context);
}

def Mica_ProportionalScalingAttr : Mica_Scaling<"Proportional", "proportional", ["scaleFrequency", "verifyPairs"]> {
  let summary = "rope scaling that rotates only the first pairs of a head (Gemma 4)";
  let description = [{
    The first `pairs` frequencies are divided by `factor`, the others are zero. Unlike `rotary_dim`, it changes neither
    which elements form a pair nor the first frequencies: with the pairing `half`, elements i and i + D / 2 of a head of
    D elements are rotated for i < pairs, by `theta^(-2 i / D)`.
  }];
  let parameters = (ins "int64_t":$pairs, "::mlir::FloatAttr":$factor);
}

def Mica_SliceAttr : Mica_Attr<"Slice", "slice"> {
  let summary = "a part of a tensor of the checkpoint";
  let description = [{
    A source of a weight that is not a whole tensor. Its parameters are applied in this order: an `entry` of the
    tensor's first axis; the matrix `transposed`; `rows` first to last (exclusive) of every period; these rows
    `as_columns`, which transposes the result. At least one of the first three is present.

    ```
    #mica.slice<"qkv", rows 1 to 3 of 6>:       rows 1 2 7 8 of 12
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

def Mica_ShardAttr : Mica_Attr<"Shard", "shard"> {
  let summary = "the part of a weight that a rank has";
  let description = [{
    The `axis` of a weight is partitioned into `ranks / replicas` parts, and rank r has part `r / replicas` (rounded
    down). A part of an axis with n entries has `ceil(n / parts)` of them; the last parts are padded with zeros. With
    `replicas`, neighboring ranks have the same part, such as the key and value heads of models that have fewer of them
    than there are ranks.

    ```
    <axis = 0, ranks = 2>, 5 rows:                  rank 0: rows 0 1 2, rank 1: rows 3 4 and a row of zeros
    <axis = 0, ranks = 4, replicas = 2>, 6 rows:    ranks 0 and 1: rows 0 1 2, ranks 2 and 3: rows 3 4 5
    ```
  }];
  let parameters = (ins "int64_t":$axis, "int64_t":$ranks, DefaultValuedParameter<"int64_t", "1">:$replicas);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// The number of different parts.
    int64_t getParts() { return getRanks() / getReplicas(); }
    /// The part that a rank has.
    int64_t partOf(int64_t rank) { return rank / getReplicas(); }
  }];
}

def Mica_PackedLayoutAttr : Mica_Attr<"PackedLayout", "packed"> {
  let summary = "the packed layout of a weight matrix [N, K]";
  let description = [{
    The encoding of a weight's tensor type:
    `tensor<64x32xbf16, #mica.packed<columns = 64, depth = 2, k_block = 32>>` stores the matrix [N, K] as [ceil(N /
    64)][ceil(K / 32) * 32 / 2][64][2], padded with zeros. Groups of `depth` values along K are adjacent,
    because a dot-product instruction consumes them together (1 for f32, 2 for bf16).

    ```
    depth = 2, columns = 4, N = 4, K = 4:   row n of W is w[n][0..3]
      memory: w00 w01 w10 w11 w20 w21 w30 w31   w02 w03 w12 w13 w22 w23 w32 w33
    ```
    This is oneDNN's layout `BA16a64b` (f32) or `BA16a64b2a` (bf16), so oneDNN and the generated kernels share one
    packed copy.

    For `!mica.block`, each block of 64 rows along K is stored as a header (scales [64], offsets [64]) and, for every 32
    elements, a chunk: sub-scales [groups][64], sub-offsets [groups][64], then the lines of the code planes. A quad is
    four adjacent elements along K. A plane of w bits has w lines [64][4], and quad q of the chunk is in line
    q / (8 / w), shifted left by w * (q mod (8 / w)) bits. Lines are in the order in which quads need them, with a line
    of the high plane before one of the low plane: for `q6_k` high 0, low 0, low 1, high 1, low 2, low 3. A block of
    `q4_k` takes 4.625 bits per element instead of 4.5 in a file, because its sub-scales become bytes.
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
    In `!mica.kv_cache<5 x 4 x 8 x !mica.int8>`, and in keys or values read from it (`tensor<?x?x4x8x!mica.int8>`),
    a row is one head at one position: `x[i] = scale * q[i]` with integers q in [-127, 127] and
    `scale = max_i |x[i]| / 127` in f32; q is rounded to nearest, ties to even. A row of zeros has the scale 0; a row
    that contains an infinity or NaN has such a scale and integers 0, so all of its elements are read as NaN. Rows are
    quantized when they are appended. Weights and activations use `!mica.block` and `!mica.int_rows` instead.
  }];
}

def Mica_BlockType : Mica_QuantizedType<"Block"> {
  let mnemonic = "block";
  let summary = "an element of a block-quantized weight";
  let description = [{
    `tensor<64x512x!mica.block<q4_k>>` is a matrix whose rows are stored in blocks along the last axis: codes of a few
    bits, a scale and optionally an offset per block, and optionally integer sub-scales and sub-offsets for each group
    of 16 or 32 elements.
    Element i of a block is `scale * scales[i / group] * level(code[i]) + sign * offset * offsets[i / group]`, in f32.
    The sign is -1 for `q2_k`, `q4_k`, `q5_k` and `int4_g32`, else 1. `ir/Quantize/BlockFormats.h` describes every
    format; docs/gguf.md has a table. Formats with names of GGUF types (`q8_0`, `q4_k`, ...) hold the blocks of a file
    bit for bit. `int8_g32`, `int6_g32` and `int4_g32` are Mica's own, quantized from floating-point weights.

    Activations multiplied by such a weight are of `!mica.int_rows`, bf16 or f32. With bf16 activations, the elements of
    the weight are rounded to bf16 as well, also if `mica.prompt_rows` is `"exact"`.

    ```
    q8_0, with 4 elements for illustration:   scale 0.5, codes 1 2 -3 4   are   0.5 1 -1.5 2
    ```
  }];
  let parameters = (ins "const ::mica::BlockFormat *":$format);
  let hasCustomAssemblyFormat = 1;
}

def Mica_IntRowsType : Mica_QuantizedType<"IntRows"> {
  let mnemonic = "int_rows";
  let summary = "an element of activations quantized to integers, with a scale for each group";
  let description = [{
    In `tensor<?x64x!mica.int_rows<bits = 16, group = 32>>` every group of 32 elements along the last axis (the last
    group may be shorter) is `x[i] = scale * q[i]` with `scale = max_i |x[i]| / limit` in f32 and integers q in
    [-limit, limit], rounded to nearest, ties to even. With 8 bits the limit is 127. With 16 bits it is 32639, and q is
    `256 * high + low`, both signed bytes. A group of zeros has the scale 0; a group that contains an infinity or NaN
    has such a scale.

    A matmul with a block-quantized weight sums integers exactly within a group of either side, multiplies these sums
    by the scales and adds the results in f32, in the order of K.

    ```
    group = 4 for illustration, bits = 8, a row 1 2 3 4 0.5 0.25 0 -0.5:
        scales 4/127 and 0.5/127, integers 32 64 95 127   127 64 0 -127
    ```
  }];
  let parameters = (ins "int64_t":$bits, "int64_t":$group);
  let assemblyFormat = [{ `<` custom<OldKeyword>("\"limbs\"") `` struct(params) `>` }];
  let genVerifyDecl = 1;
}

def Mica_KvLayoutAttr : Mica_Attr<"KvLayout", "kv_layout"> {
  let summary = "the memory layout of a cache";
  let description = [{
    Positions are stored in blocks of `block`. With D' = head_dim rounded up to a multiple of 16, a block of keys is
    stored as [D' / depth][block][depth], so that a vector holds the same elements of consecutive positions; a block of
    values is stored as [block / depth][D'][depth], so that a vector holds the elements of one position. `depth` values
    are adjacent, because a dot-product instruction consumes them together (1 for f32, 2 for bf16, 4 for 8-bit
    integers). If the values are the first elements of the keys, their shared cache is stored as keys; attention
    transposes its blocks when it reads values. The integers of a block are followed by the scales of its positions,
    [block] in f32.

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
  let summary = "how attention is split into tasks";
  let description = [{
    A task processes one key/value head and a tile of up to `rows` consecutive rows; rows of the same sequence share the
    reads of its keys and values. If many query heads share a key/value head, a task processes `heads` of them (default:
    all). The positions that a row attends to are split into chunks of `chunk` positions (or of the smallest multiple
    that gives at most 16 chunks), each with its own softmax; chunks are always combined in order, independently of the
    tile. With `split`, for tiles of one row, every chunk is a separate task.

    ```
    chunk = 512, a row at position 1300:   [0, 512) [512, 1024) [1024, 1301)
            split:  three tasks per head, then one that combines them;  else: one task processes them in order
    ```
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$chunk, "bool":$split,
                        DefaultValuedParameter<"int64_t", "0">:$heads);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Mica_KvCacheType : TypeDef<Mica_Dialect, "KvCache", [Mica_SequenceState]> {
  let mnemonic = "kv_cache";
  let summary = "the keys or values of all previous positions";
  let description = [{
    `!mica.kv_cache<5 x 4 x 8 x f32>` holds 5 layers of 4 key/value heads of 8 elements. The numbers of sequences and
    positions are dynamic: the equivalent tensor is `tensor<5x?x?x4x8xf32>`. The elements are f32, bf16 or `!mica.int8`,
    with a scale for every head at every position: a head of 64 elements takes 68 bytes instead of 128 in bf16. Stage
    `kernels` adds the physical layout.

    `!mica.kv_cache<5 x 4 x 8 x f32 window(128)>` is for layers whose attention has a window of at most 128 positions:
    only the last 128 positions of a sequence before the next row have to be stored. Results do not depend on the
    window, because the verifiers of all stages reject an attention that looks further back; a program needs
    memory for the window instead of the whole context, see [state.md](state.md). Layers of one model may have caches of
    different types: each function takes those of its layers, and the layer index of a cache counts only its own layers.
  }];
  let parameters = (ins "int64_t":$layers, "int64_t":$heads, "int64_t":$headDim, "::mlir::Type":$elementType,
                        DefaultValuedParameter<"int64_t", "0">:$window,
                        OptionalParameter<"::mica::KvLayoutAttr">:$layout);
  let assemblyFormat = [{
    `<` $layers `x` $heads `x` $headDim `x` $elementType (`window` `(` $window^ `)`)? (`,` $layout^)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    // The same cache with the given properties replaced.
    KvCacheType withLayout(::mica::KvLayoutAttr layout) {
      return get(getContext(), getLayers(), getHeads(), getHeadDim(), getElementType(), getWindow(), layout);
    }
    KvCacheType withHeads(int64_t heads, int64_t headDim) {
      return get(getContext(), getLayers(), heads, headDim, getElementType(), getWindow(), getLayout());
    }
    /// [layers, sequences (dynamic), heads, blocks of positions (dynamic), elements of a block]; needs a layout. Blocks
    /// of integers are bytes: the scales are among them.
    ::llvm::SmallVector<int64_t> getPhysicalShape();
    /// The offset in bytes of the scale of position `inBlock` in a block of integers; needs a layout.
    int64_t getScaleOffset(int64_t inBlock);
    // See SequenceState.
    ::mlir::RankedTensorType getPhysicalType();
    ::llvm::SmallVector<int64_t> getRowShape() { return {getHeads(), getHeadDim()}; }
    int64_t getBytesPerPosition();
    int64_t getSlots() { return 0; }
    int64_t getBytesPerSequence() { return 0; }
    int64_t getPositionBlock() { return getLayout().getBlock(); }
    ::std::optional<int64_t> getPartsOfRanks(int64_t ranks);
    ::mlir::Type getPart(int64_t parts) { return withHeads(getHeads() / parts, getHeadDim()); }
    ::mlir::Type withElementType(::mlir::Type elementType) {
      return get(getContext(), getLayers(), getHeads(), getHeadDim(), elementType, getWindow(), getLayout());
    }
    ::mlir::Type withLayout(::mica::KvKind kind, int64_t positions, int64_t depth) {
      return withLayout(KvLayoutAttr::get(getContext(), kind, positions, depth));
    }
    ::llvm::StringRef getContentName();
  }];
}

def Mica_RollingStateType : TypeDef<Mica_Dialect, "RollingState", [Mica_SequenceState]> {
  let mnemonic = "rolling_state";
  let summary = "the last inputs of a causal convolution";
  let description = [{
    `!mica.rolling_state<10 x 64 x f32 window(3)>` holds rows of 64 channels for 10 layers. An op that updates it reads
    the rows of the last 3 positions, including its own; earlier rows are no longer needed. The interpreter stores all
    positions, `tensor<10x?x?x64xf32>`. The element type is always f32.

    In memory it is a ring buffer, `tensor<10x?x64x64xf32>`: layers, sequences, 64 slots, channels. The row of position
    p is in slot p mod 64, so the memory per sequence does not depend on its length, and its last `64 - window + 1`
    positions can be rewound, see [state.md](state.md).
  }];
  let parameters = (ins "int64_t":$layers, "int64_t":$channels, "::mlir::Type":$elementType, "int64_t":$window);
  let assemblyFormat = "`<` $layers `x` $channels `x` $elementType `window` `(` $window `)` `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Number of slots in the ring buffer of a sequence.
    static constexpr int64_t kSlots = 64;
    // See SequenceState.
    ::mlir::RankedTensorType getPhysicalType();
    ::llvm::SmallVector<int64_t> getRowShape() { return {getChannels()}; }
    int64_t getBytesPerPosition() { return 0; }
    int64_t getSlots() { return kSlots; }
    int64_t getBytesPerSequence();
    int64_t getPositionBlock() { return 0; }
    ::std::optional<int64_t> getPartsOfRanks(int64_t ranks);
    ::mlir::Type getPart(int64_t parts) {
      return get(getContext(), getLayers(), getChannels() / parts, getElementType(), getWindow());
    }
    ::mlir::Type withElementType(::mlir::Type) { return *this; }
    ::llvm::StringRef getContentName() { return "conv_state"; }
  }];
}

def Mica_RecurrentStateType : TypeDef<Mica_Dialect, "RecurrentState", [Mica_SequenceState]> {
  let mnemonic = "recurrent_state";
  let summary = "a matrix per head that every position updates";
  let description = [{
    `!mica.recurrent_state<10 x 8 x 128 x 64 x f32>` holds a matrix [128, 64] for each of 10 layers and 8 heads: the
    state of linear attention after the last position. The interpreter stores the matrix after every position,
    `tensor<10x?x?x8x128x64xf32>`. The element type is always f32.

    In memory it is `tensor<10x?x8x28736xf32>`: layers, sequences, heads, and per head two matrices and a ring of 64
    slots. Matrices are stored for multiples of 32 positions, the one after position 32 c - 1 in slot c mod 2. The ring
    holds what later positions add: keys, then values, then decays; those of position p are in slot p mod 64. A
    matrix is written once per 32 positions, the memory per sequence does not depend on its length, and its last 32
    positions can be rewound, see [state.md](state.md).
  }];
  let parameters = (ins "int64_t":$layers, "int64_t":$heads, "int64_t":$keyDim, "int64_t":$valueDim,
                        "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $layers `x` $heads `x` $keyDim `x` $valueDim `x` $elementType `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Positions between stored matrices, and slots in the ring buffer of a sequence.
    static constexpr int64_t kChunk = 32, kSlots = 64;
    // Offsets of the parts of a head, in elements.
    int64_t getKeysOffset() { return 2 * getKeyDim() * getValueDim(); }
    int64_t getValuesOffset() { return getKeysOffset() + kSlots * getKeyDim(); }
    int64_t getDecaysOffset() { return getValuesOffset() + kSlots * getValueDim(); }
    // See SequenceState.
    ::mlir::RankedTensorType getPhysicalType();
    ::llvm::SmallVector<int64_t> getRowShape() { return {getHeads(), getKeyDim(), getValueDim()}; }
    int64_t getBytesPerPosition() { return 0; }
    int64_t getSlots() { return kSlots; }
    int64_t getBytesPerSequence();
    int64_t getPositionBlock() { return 0; }
    ::std::optional<int64_t> getPartsOfRanks(int64_t ranks);
    ::mlir::Type getPart(int64_t parts) {
      return get(getContext(), getLayers(), getHeads() / parts, getKeyDim(), getValueDim(), getElementType());
    }
    ::mlir::Type withElementType(::mlir::Type) { return *this; }
    int64_t getWindow() { return kChunk; }
    ::llvm::StringRef getContentName() { return "recurrent_state"; }
  }];
}

#endif // MICA_ATTRS
