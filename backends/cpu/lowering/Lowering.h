//===- Lowering.h - what the lowering patterns share ------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_LOWERING_LOWERING_H
#define MICA_BACKENDS_CPU_LOWERING_LOWERING_H

#include "backends/cpu/kernels/matmul/Panel.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mica::cpu {

/// The name of a product's kernel: `base_NxK`.
inline std::string productName(llvm::StringRef base, int64_t n, int64_t k) {
  return (base + "_" + llvm::Twine(n) + "x" + llvm::Twine(k)).str();
}

/// What kernels need to know of a weight [..., N, K] that the rows `x` (null: none) multiply.
inline WeightSpec weightSpecOf(mlir::Value weight, mlir::Value x = {}) {
  auto type = llvm::cast<mlir::RankedTensorType>(weight.getType());
  return {type.getRank() > 1 ? type.getDimSize(type.getRank() - 2) : 1, type.getShape().back(),
          type.getElementType(), x ? limbsOf(mlir::getElementTypeOrSelf(x)) : 0};
}

/// Whether a weight has the physical form that products read.
inline bool isPacked(mlir::Value weight) {
  return llvm::isa_and_nonnull<PackedLayoutAttr>(
      llvm::cast<mlir::RankedTensorType>(weight.getType()).getEncoding());
}

/// Whether a kernel multiplies the rows `x` by `weight`; if not, says why.
mlir::LogicalResult checkProduct(mlir::Operation *op, mlir::Value x, mlir::Value weight);

/// Blocks of 64 columns that cover `n`: the tasks of a product.
inline int64_t blocksOf(int64_t n) { return roundUp(n, kBlockColumns) / kBlockColumns; }

/// What a launch costs, in the words of `#exec.cost`.
struct LaunchCost {
  int64_t weightBytes = 0, rowWeightBytes = 0;
  int64_t expertBytes = 0, experts = 0, rowExperts = 0;
  int64_t rowCacheBytes = 0, positionCacheBytes = 0;
  int64_t rowFlops = 0, pairFlops = 0, window = 0;

  /// Null where all is zero.
  exec::CostAttr attribute(mlir::MLIRContext *context) const;
};

/// Bytes of tensors of static shapes, as they are in memory; what is null counts nothing.
int64_t sizeInBytes(mlir::ValueRange tensors);
/// Bytes of one position of one layer of a cache.
int64_t bytesPerPosition(KvCacheType cache);

/// Caches and packed weights as tensors of their physical shapes; everything else stays.
class PhysicalTypeConverter : public mlir::TypeConverter {
public:
  PhysicalTypeConverter();
};

/// A pattern that turns a mica op into launches.
template <typename Op> class Lowering : public mlir::OpConversionPattern<Op> {
public:
  Lowering(const mlir::TypeConverter &converter, mlir::MLIRContext *context, KernelLibrary &kernels)
      : mlir::OpConversionPattern<Op>(converter, context), kernels(kernels) {}

protected:
  KernelLibrary &kernels;
};

/// Emits one launch.
class Launcher {
public:
  Launcher(mlir::ConversionPatternRewriter &rewriter, mlir::Location loc, KernelLibrary &kernels)
      : rewriter(rewriter), loc(loc), kernels(kernels) {}

  /// The launch of kernel `base` over `tasks`; returns the new values of the outputs. `identity` is
  /// all that its body depends on besides its types: see `parameters`.
  mlir::SmallVector<mlir::Value> operator()(llvm::StringRef base, mlir::ArrayAttr identity,
                                            mlir::Value tasks, mlir::ValueRange inputs,
                                            mlir::ValueRange outputs, KernelLibrary::Build build,
                                            const LaunchCost &cost = {});

  /// The same with a task per row of the first input, and a new tensor of `type` as the output.
  mlir::Value overRows(llvm::StringRef base, mlir::ArrayAttr identity, mlir::ValueRange inputs,
                       mlir::Type type, KernelLibrary::Build build, const LaunchCost &cost = {});

  /// Numbers, truth values, words, types and attributes as what identifies a kernel.
  template <typename... Parts> mlir::ArrayAttr parameters(const Parts &...parts) {
    std::array<mlir::Attribute, sizeof...(parts)> all{parameter(parts)...};
    return rewriter.getArrayAttr(all);
  }

  /// Extent of the leading axis.
  mlir::Value rowsOf(mlir::Value tensor);
  mlir::Value constant(int64_t value);
  /// An uninitialized tensor of `type`, whose dynamic extents are all `rows`.
  mlir::Value empty(mlir::Type type, mlir::Value rows);

  mlir::ConversionPatternRewriter &rewriter;
  mlir::Location loc;
  KernelLibrary &kernels;

private:
  template <typename Part> mlir::Attribute parameter(const Part &part) {
    if constexpr (std::is_same_v<Part, bool>)
      return rewriter.getBoolAttr(part);
    else if constexpr (std::is_integral_v<Part>)
      return rewriter.getI64IntegerAttr(part);
    else if constexpr (std::is_floating_point_v<Part>)
      return rewriter.getF64FloatAttr(part);
    else if constexpr (std::is_base_of_v<mlir::Type, Part>)
      return mlir::TypeAttr::get(part);
    else if constexpr (std::is_base_of_v<mlir::Attribute, Part>)
      return part;
    else
      return rewriter.getStringAttr(part);
  }
};

void populateRowPatterns(mlir::RewritePatternSet &patterns, const mlir::TypeConverter &converter,
                         KernelLibrary &kernels);
void populateProductPatterns(mlir::RewritePatternSet &patterns,
                             const mlir::TypeConverter &converter, KernelLibrary &kernels);
void populateAttentionPatterns(mlir::RewritePatternSet &patterns,
                               const mlir::TypeConverter &converter, KernelLibrary &kernels);
void populateMoePatterns(mlir::RewritePatternSet &patterns, const mlir::TypeConverter &converter,
                         KernelLibrary &kernels);
void populateStatePatterns(mlir::RewritePatternSet &patterns, const mlir::TypeConverter &converter,
                           KernelLibrary &kernels);
void populateWeightPatterns(mlir::RewritePatternSet &patterns, const mlir::TypeConverter &converter,
                            KernelLibrary &kernels);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_LOWERING_LOWERING_H
