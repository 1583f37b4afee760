// Weights as symbols.

def Mica_WeightOp : Mica_Op<"weight", [Symbol]> {
  let summary = "a tensor of the checkpoint";
  let description = [{
    Declares a weight: its name, its type and the checkpoint tensors that it consists of. The data stays in the
    checkpoint. Without `sources`, the name of the symbol is the name of the tensor. Several sources are concatenated
    along the rows (`concat`), stacked along a new leading axis (`stack`), or split into blocks of 64 rows, padded with
    zero rows to whole blocks, that alternate (`interleave`: 64 rows of the first, 64 of the second, ...). If `stack`
    joins matrices that are themselves composed, groups of `parts` sources are interleaved and the results are stacked.
    Values are rounded to the precision of the type. At stage `kernels` the encoding of the type is the layout
    (`tensor<96x64xbf16, #mica.packed<...>>`), for the symbol and for every value and argument that holds the weight;
    `offset` and `bytes` give its location in the program.

    A source is the name of a tensor or a part of one, `#mica.slice`: an entry of its first axis, a transposed matrix,
    or some rows of every period. With slices, a fused tensor of queries, keys and values becomes three weights,
    whether they are stored one after the other or head by head.

    With `shard`, the weight is the part of a rank in a model that several ranks run, see `mica.all_gather`; its type is
    that of the part. Each source is partitioned before it is composed with others, so the part of merged queries, keys
    and values is made of a part of each. The entries of a stack are partitioned along their own axes, or, along axis 0,
    distributed over ranks.

    `stored` states that the sources are stored in blocks of that type, which `mica-preserve-blocks` can preserve.

    Example:
    ```mlir
    mica.weight @"model.norm.weight" : tensor<64xf32>
    mica.weight @"qkv" from ["q_proj.weight", "k_proj.weight", "v_proj.weight"] concat : tensor<96x64xbf16>
    mica.weight @"gate_up" from ["gate_proj.weight", "up_proj.weight"] interleave : tensor<384x64xbf16>
    mica.weight @"experts" from ["0.down_proj.weight", "1.down_proj.weight"] stack : tensor<2x64x172xf32>
    mica.weight @"q_proj" from [#mica.slice<"qkv_proj.weight", rows 0 to 64 of 128>] : tensor<64x64xf32>
    mica.weight @"c_fc" from [#mica.slice<"c_fc.weight", transposed>] : tensor<256x64xf32>
    mica.weight @"k_proj" {stored = !mica.block<q8_0>} : tensor<32x64xf32>
    module attributes {mica.ranks = 2 : i64} {
      mica.weight @"o_proj" shard <axis = 0, ranks = 2> : tensor<32x64xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type,
                       OptionalAttr<Mica_SourceArrayAttr>:$sources, OptionalAttr<Mica_ComposeAttr>:$compose,
                       DefaultValuedAttr<I64Attr, "1">:$parts,
                       OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$bytes,
                       OptionalAttr<TypeAttr>:$stored, OptionalAttr<Mica_ShardAttr>:$shard);
  let assemblyFormat = [{
    $sym_name (`from` $sources^ custom<Composition>($compose))? (`parts` `(` $parts^ `)`)? (`shard` $shard^)?
    (`at` $offset^)? (`bytes` $bytes^)? attr-dict `:` $type
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType();
    /// The sources in order: names of tensors and slices; see TensorPart::of.
    ::llvm::SmallVector<::mlir::Attribute> getSourceList();
  }];
}

def Mica_EqualizeOp : Mica_Op<"equalize"> {
  let summary = "cross-layer equalization of checkpoint tensors";
  let description = [{
    Elements of a quantization group share a scale, so one large channel reduces the precision of its neighbors. If the
    rows of some tensors are multiplied only with the columns of others (a norm's weight and the matmuls that read the
    norm, `up` and `down` of a gated MLP), every channel j can be divided by b_j on one side and multiplied by it on
    the other. `mica.equalize` applies this to every weight made of these tensors. Let r_j be the largest magnitude in
    row j of `rows` (of a vector: of its element j), c_j the largest ratio of an element in column j of `columns` to
    the largest magnitude in its row, and m the median of all r_j / c_j that are positive and finite (the lower of two
    middle ones). Then `b_j = 2^floor(log2(r_j / c_j / m) / 2 + 1 / 2)`, or 1 if r_j or c_j is zero. This makes the
    magnitudes of a channel similar on both sides (Nagel et al. 2019, arXiv:1906.04721), and powers of two cause no
    rounding errors. Magnitudes in `columns` are relative to their row, because every row has its own scale. A common
    factor of all b_j would not affect precision; m is chosen so that typical channels are unchanged: where r_j / c_j
    is between m / 2 and 2 m, b_j is 1.

    With an `offset`, the elements of `rows` are those of the checkpoint plus the offset, in f32, for norms whose
    checkpoint stores the difference of the weight from 1.

    ```
    norm weight 0.5 32 0.5 becomes 0.5 2 0.5,   columns 1 1/4 1 become 1 4 1:   m = 1/2, b = 1 16 1
    ```

    Example:
    ```mlir
    mica.weight @"norm.weight" : tensor<64xf32>
    mica.weight @"q_proj.weight" : tensor<32x64x!mica.block<int8_g32>>
    mica.equalize rows ["norm.weight"] columns ["q_proj.weight"]
    ```
  }];
  let arguments = (ins Mica_SourceArrayAttr:$rows, Mica_SourceArrayAttr:$columns,
                       DefaultValuedAttr<F64Attr, "0.0">:$offset);
  let assemblyFormat = "`rows` $rows (`offset` `(` $offset^ `)`)? `columns` $columns attr-dict";
  let hasVerifier = 1;
}

def Mica_GetWeightOp : Mica_PureOp<"get_weight", [Mica_RunsNoKernel, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the value of a weight";
  let description = [{
    The tensor that the symbol refers to, composed of its sources and rounded to its type. The printed name of the value
    is derived from the symbol: `%q_proj.3` is `@"model.layers.3.self_attn.q_proj.weight"`.

    Example:
    ```mlir
    mica.weight @"model.norm.weight" : tensor<64xf32>
    func.func @get_weight() -> tensor<64xf32> {
      %norm = mica.get_weight @"model.norm.weight" : tensor<64xf32>
      return %norm : tensor<64xf32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$weight attr-dict `:` type($result)";
}

def Mica_SelectWeightOp : Mica_PureOp<"select_weight", [Mica_RunsNoKernel, Mica_SelectsEntry,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of one of several weights of a type";
  let description = [{
    `weights[index]`: the weight of a layer in a loop over layers. The listed weights differ only in their storage.
    The index must be within the list.

    Example:
    ```mlir
    mica.weight @"layers.0.norm.weight" : tensor<64xf32>
    mica.weight @"layers.1.norm.weight" : tensor<64xf32>
    func.func @select_weight(%layer: index) -> tensor<64xf32> {
      %norm = mica.select_weight [@"layers.0.norm.weight", @"layers.1.norm.weight"][%layer] : tensor<64xf32>
      return %norm : tensor<64xf32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefArrayAttr:$weights, Index:$index);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$weights `[` $index `]` attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    int64_t getNumEntries() { return getWeights().size(); }
    static ::llvm::StringRef getEntryNoun() { return "weight"; }
  }];
  let hasVerifier = 1;
}

def Mica_IndexTableOp : Mica_PureOp<"index_table", [Mica_RunsNoKernel, Mica_SelectsEntry,
    DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "an entry of a constant index table";
  let description = [{
    `numbers[index]`: an index in a loop over layers that follows no regular pattern, such as the indices of the layers
    of one type in a model with several layer types. The index must be within the list.

    Example:
    ```mlir
    func.func @index_table(%i: index) -> index {
      %layer = mica.index_table [0, 3, 4, 9][%i]
      return %layer : index
    }
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$numbers, Index:$index);
  let results = (outs Index:$result);
  let assemblyFormat = "$numbers `[` $index `]` attr-dict";
  let extraClassDeclaration = [{
    int64_t getNumEntries() { return getNumbers().size(); }
    static ::llvm::StringRef getEntryNoun() { return "number"; }
  }];
  let hasVerifier = 1;
}
