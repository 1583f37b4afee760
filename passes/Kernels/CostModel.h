//===- CostModel.h - who computes, and in which pieces ------------*- C++ -*-===//

#ifndef MICA_PASSES_KERNELS_COSTMODEL_H
#define MICA_PASSES_KERNELS_COSTMODEL_H

#include "passes/Passes.h"

namespace mica {

/// A product of `rows` rows with a weight [n, k].
struct ProductShape {
  int64_t rows, n, k;
  Precision weights;
};

/// What the choice depends on besides the shape.
struct KernelCosts {
  /// The most rows for which generated kernels, which read weights once at the memory's bandwidth,
  /// are taken whatever the shape.
  int64_t crossing = 16;
  /// The same for pairs of bf16 and for integers where generated kernels multiply in tile registers,
  /// 0 where they do not: see kTileRows.
  int64_t tileRows = 0;
  /// Multiply-adds below which a library call does not pay. A call costs about 5 us (descriptors,
  /// waking the pool), generated kernels reach about 100 GFLOP/s at these sizes where oneDNN
  /// reaches 500: 5 us * 2 / (1/100 - 1/500) per GFLOP/s is 0.6 MFLOP, hence a quarter of a million
  /// multiply-adds.
  int64_t minWork = 262144;
  /// Whether the target's oneDNN is fast in a format: on AVX2 without AVX-512 its bf16 path is not.
  bool onednnF32 = true;
  bool onednnBf16 = true;
  /// Products of integers: without VNNI, oneDNN's are slower than its own f32 ones.
  bool onednnInt8 = true;
};

/// Rows up to which products of bf16 in generated tiles beat oneDNN's: at the shape of a Llama with
/// 1 billion parameters, 2 threads of a Xeon with AMX, prompts of 17 took half of the time, of 128
/// and of 256 0.7 (`bench --prompt N` of programs with either crossing). Behind 256 rows generated
/// kernels read the weights again.
inline constexpr int64_t kTileRows = 256;

/// Whether tile registers multiply rows with a weight [n, k] of that precision: pairs of bf16, none
/// left over, and integers.
bool takesTiles(Precision weights, int64_t k);

/// The numbers of rows at which a program with products that tiles take, or without such, changes its
/// kernels: ascending, the first one is `crossing`.
llvm::SmallVector<int64_t> chooseCrossings(bool hasTileProducts, const KernelCosts &costs);

/// Who computes a product.
KernelKind chooseKernel(const ProductShape &shape, const KernelCosts &costs);

/// Attention of query heads that share a key/value head.
struct AttentionShape {
  bool fewRows;  ///< a row or a few per call, as in decoding
  int64_t group; ///< query heads per key/value head
};

/// How attention is cut.
AttentionTilingAttr chooseTiling(const AttentionShape &shape, mlir::MLIRContext *context);

} // namespace mica

#endif // MICA_PASSES_KERNELS_COSTMODEL_H
