// Weights as symbols.

def Mica_WeightOp : Mica_Op<"weight", [Symbol]> {
  let summary = "a tensor of the checkpoint";
  let description = [{
    Names a weight, its type and the tensors of the checkpoint that it is made of; the bytes stay in the checkpoint.
    Without `sources` the symbol's name is the tensor's. Several sources are joined along the rows (`concat`), become
    the entries of a new leading axis (`stack`), or are cut into blocks of 64 rows, padded with zero rows to whole
    blocks, that alternate (`interleave`: 64 rows of the first, 64 of the second, ...). Where `stack` joins matrices
    that are composed themselves, `parts` sources at a time are interleaved and the results stacked. Values of another
    precision than the type's are rounded. At stage `kernels` the encoding of the type is the layout
    (`tensor<96x64xbf16, #mica.packed<...>>`), in the symbol as in every value and argument that carries the weight;
    `offset` and `bytes` say where the program stores it.

    A source is the name of a tensor or a part of one, `#mica.slice`: an entry of its first axis, a matrix read
    transposed, or some rows of every period. So a fused tensor of queries, keys and values becomes three weights,
    whether it holds them one after the other or head by head.

    `stored` says that the sources hold blocks of that type: a pass may keep them (`mica-preserve-blocks`).

    Example:
    ```mlir
    mica.weight @"model.norm.weight" : tensor<64xf32>
    mica.weight @"qkv" from ["q_proj.weight", "k_proj.weight", "v_proj.weight"] concat : tensor<96x64xbf16>
    mica.weight @"gate_up" from ["gate_proj.weight", "up_proj.weight"] interleave : tensor<384x64xbf16>
    mica.weight @"experts" from ["0.down_proj.weight", "1.down_proj.weight"] stack : tensor<2x64x172xf32>
    mica.weight @"q_proj" from [#mica.slice<"qkv_proj.weight", rows 0 to 64 of 128>] : tensor<64x64xf32>
    mica.weight @"c_fc" from [#mica.slice<"c_fc.weight", transposed>] : tensor<256x64xf32>
    mica.weight @"k_proj" {stored = !mica.block<q8_0>} : tensor<32x64xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type,
                       OptionalAttr<Mica_SourceArrayAttr>:$sources, OptionalAttr<Mica_ComposeAttr>:$compose,
                       DefaultValuedAttr<I64Attr, "1">:$parts,
                       OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$bytes,
                       OptionalAttr<TypeAttr>:$stored);
  let assemblyFormat = [{
    $sym_name (`from` $sources^ custom<Composition>($compose))? (`parts` `(` $parts^ `)`)?
    (`at` $offset^)? (`bytes` $bytes^)? attr-dict `:` $type
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType();
    /// What it is made of, in order: tensors by their names, and slices (TensorPart::of reads both).
    ::llvm::SmallVector<::mlir::Attribute> getSourceList();
  }];
}

def Mica_EqualizeOp : Mica_Op<"equalize"> {
  let summary = "cross-layer equalization of checkpoint tensors";
  let description = [{
    Elements of a group share a scale, so that one large channel takes its neighbors' precision away. Where the rows of
    some tensors meet the columns of others and nothing else (a norm's gains and the products that read the norm,
    `up` and `down` of a gated network), every channel j may be divided by b_j on one side and multiplied by it on
    the other: `mica.equalize` says that every weight made of these tensors reads them so. With r_j the largest
    magnitude in row j of `rows` (of a vector, of its element j), c_j the largest share that an element in column j of
    `columns` has of its row's largest magnitude and m the median of all r_j / c_j that are positive and finite (of two
    middle ones the lower), `b_j = 2^floor(log2(r_j / c_j / m) / 2 + 1 / 2)`, and 1 where one of both is zero: channels
    become about equal on both sides (Nagel et al. 2019, arXiv:1906.04721), and powers of two round nothing. A row has
    a scale of its own, so that a large one says nothing of its columns. What all b_j have in common changes no
    precision; by the median channels that are alike stay alike: from half of it up to twice it b is 1.

    With an `offset` the elements of `rows` are the checkpoint's with it added, in f32, as the gains of a norm are whose
    checkpoint holds what they differ by from 1.

    ```
    gain 0.5 32 0.5 becomes 0.5 2 0.5,   columns 1 1/4 1 become 1 4 1:   m = 1/2, b = 1 16 1
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

def Mica_GetWeightOp : Mica_PureOp<"get_weight", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the value of a weight";
  let description = [{
    The tensor that the symbol stands for, composed of its sources and rounded to its type. Printed, the value is named
    after the symbol: `%q_proj.3` is `@"model.layers.3.self_attn.q_proj.weight"`.

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

def Mica_SelectWeightOp : Mica_PureOp<"select_weight", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of one of several weights of a type";
  let description = [{
    `weights[index]`: the weight of a layer inside a loop over layers. Only the storage differs between the listed
    weights. The index must be inside the list.

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
  let hasVerifier = 1;
}

def Mica_IndexTableOp : Mica_PureOp<"index_table", [
    DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "an entry of a constant index table";
  let description = [{
    `numbers[index]`: what a loop over layers counts where it follows no rule, as the layers of one kind among those of
    others. The index must be inside the list.

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
  let hasVerifier = 1;
}
