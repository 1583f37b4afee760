// All ops of the `mica` dialect. Each file holds one topic.

#ifndef MICA_OPS
#define MICA_OPS

include "MicaAttrs.td"
include "ProductInterfaces.td"
include "RowInterfaces.td"
include "WeightInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferIntRangeInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

// Constraints, named as people would say them. Only the number of rows, sequences and positions is dynamic.
class Mica_StaticFrom<int axis> : CPred<
    "!::llvm::is_contained(::llvm::cast<::mlir::ShapedType>($_self).getShape().drop_front(" # axis # "), "
    "::mlir::ShapedType::kDynamic)">;
def Mica_Float : AnyTypeOf<[F32, BF16, F16], "f32, bf16 or f16">;
def Mica_Compute : AnyTypeOf<[F32, BF16], "f32 or bf16">;
class Mica_Quantized<string use, string summary>
    : Type<CPred<"::mica::isQuantized($_self, ::mica::QuantizedUse::" # use # ")">, summary>;
def Mica_Int8 : Mica_Quantized<"Cache", "!mica.int8">;
def Mica_Block : Mica_Quantized<"Weights", "!mica.block">;
def Mica_IntRows : Mica_Quantized<"Rows", "!mica.int_rows">;
def Mica_Rows : RankedTensorOf<[Mica_Compute, Mica_IntRows],
    [HasAnyRankOfPred<[2]>, Mica_StaticFrom<1>], "rows [T, C]">;
def Mica_Rows32 : RankedTensorOf<[F32], [HasAnyRankOfPred<[2]>, Mica_StaticFrom<1>], "rows [T, C]">;
def Mica_Heads : RankedTensorOf<[Mica_Compute], [HasAnyRankOfPred<[3]>, Mica_StaticFrom<1>], "heads [T, H, D]">;
def Mica_Heads32 : RankedTensorOf<[F32], [HasAnyRankOfPred<[3]>, Mica_StaticFrom<1>], "heads [T, H, D]">;
def Mica_HeadRows : RankedTensorOf<[Mica_Compute, Mica_IntRows],
    [HasAnyRankOfPred<[3]>, Mica_StaticFrom<1>], "heads [T, H, K]">;
def Mica_RowsOrHeads : RankedTensorOf<[Mica_Compute, Mica_IntRows],
    [HasAnyRankOfPred<[2, 3]>, Mica_StaticFrom<1>], "rows [T, C] or heads [T, H, D]">;
def Mica_Gathered : RankedTensorOf<[Mica_Compute],
    [HasAnyRankOfPred<[2, 3]>, Mica_StaticFrom<1>], "rows [T, C] or heads [T, H, D] in f32 or bf16">;
def Mica_RowIndex : RankedTensorOf<[I32], [HasAnyRankOfPred<[1]>], "one number per row [T]">;
def Mica_Keys : RankedTensorOf<[Mica_Compute, Mica_Int8],
    [HasAnyRankOfPred<[4]>, Mica_StaticFrom<2>], "keys or values [B, P, G, D]">;
def Mica_Vector : RankedTensorOf<[Mica_Float], [HasStaticShapePred, HasAnyRankOfPred<[1]>], "a weight vector [N]">;
def Mica_HeadFactors : AnyTypeOf<[Mica_Rows32, Mica_Vector], "numbers [T, H] in f32 or a weight vector [H]">;
def Mica_Vectors : RankedTensorOf<[Mica_Float],
    [HasStaticShapePred, HasAnyRankOfPred<[2]>], "a weight vector for each expert [E, N]">;
def Mica_Weight : AnyTypeOf<[Mica_Float, Mica_Block], "f32, bf16, f16 or !mica.block">;
def Mica_NormVector : RankedTensorOf<[Mica_Float],
    [HasStaticShapePred, HasAnyRankOfPred<[1, 2]>], "a weight vector [N], or one for each head [H, D]">;
def Mica_Filters : RankedTensorOf<[Mica_Float],
    [HasStaticShapePred, HasAnyRankOfPred<[2]>], "a filter for each channel [C, K]">;
def Mica_Matrix : RankedTensorOf<[Mica_Weight], [HasStaticShapePred, HasAnyRankOfPred<[2]>], "a weight matrix [N, K]">;
def Mica_Matrices : RankedTensorOf<[Mica_Weight],
    [HasStaticShapePred, HasAnyRankOfPred<[3]>], "weight matrices [E, N, K]">;
def Mica_KeyMask : RankedTensorOf<[I1], [HasAnyRankOfPred<[2]>], "a key mask [B, P]">;
def Mica_RopeTable : RankedTensorOf<[F32],
    [HasAnyRankOfPred<[3]>, Mica_StaticFrom<1>], "cosines and sines [T, 2, rotary_dim / 2]">;
def Mica_ExpertIds : RankedTensorOf<[I32], [HasAnyRankOfPred<[2]>, Mica_StaticFrom<1>], "expert ids [T, k]">;
def Mica_Probed : RankedTensorOf<[Mica_Compute, Mica_IntRows, I32],
    [HasAnyRankOfPred<[2, 3]>, Mica_StaticFrom<1>], "rows [T, C], heads [T, H, D] or expert ids [T, k]">;

def Mica_ComputesLogits : NativeOpTrait<"ComputesLogits"> { let cppNamespace = "::mica"; }
def Mica_KnownAttributes : NativeOpTrait<"KnownAttributes"> { let cppNamespace = "::mica"; }
def Mica_MadeByFusion : NativeOpTrait<"MadeByFusion"> { let cppNamespace = "::mica"; }
def Mica_NotProbed : NativeOpTrait<"NotProbed"> { let cppNamespace = "::mica"; }
def Mica_RunsNoKernel : NativeOpTrait<"RunsNoKernel"> { let cppNamespace = "::mica"; }
class Mica_Op<string mnemonic, list<Trait> traits = []>
    : Op<Mica_Dialect, mnemonic, !listconcat(traits, [Mica_KnownAttributes])>;
class Mica_PureOp<string mnemonic, list<Trait> traits = []> : Mica_Op<mnemonic, !listconcat(traits, [Pure])>;

include "WeightOps.td"
include "ElementwiseOps.td"
include "NormOps.td"
include "LinearOps.td"
include "AttentionOps.td"
include "StateOps.td"
include "MoeOps.td"
include "ShardOps.td"
include "FusedOps.td"

#endif // MICA_OPS
