//===- Lowering.h - what the lowering patterns share ----------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_LOWERING_LOWERING_H
#define MICA_BACKENDS_CPU_LOWERING_LOWERING_H

#include "backends/cpu/kernels/matmul/Panel.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/Support/Format.h"

namespace mica::cpu {

/// Everything that a kernel depends on as one text; floating point numbers in full precision.
template <typename... Parts> std::string specOf(const Parts &...parts) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto print = [&](const auto &part) {
    if constexpr (std::is_floating_point_v<std::decay_t<decltype(part)>>)
      stream << llvm::format("%.17g", static_cast<double>(part));
    else
      stream << part;
    stream << ',';
  };
  (print(parts), ...);
  return text;
}

/// The name of a product's kernel: `base_NxK`.
inline std::string productName(llvm::StringRef base, int64_t n, int64_t k) {
  return (base + "_" + llvm::Twine(n) + "x" + llvm::Twine(k)).str();
}

/// The limbs of rows of !mica.int_rows; 0 of others.
inline int64_t limbsOf(mlir::Value rows) {
  auto type = llvm::dyn_cast<IntRowsType>(mlir::getElementTypeOrSelf(rows));
  return type ? type.getLimbs() : 0;
}

/// What kernels need to know of a weight [..., N, K] that the rows `x` (null: none) multiply.
inline WeightSpec weightSpecOf(mlir::Value weight, mlir::Value x = {}) {
  auto type = llvm::cast<mlir::RankedTensorType>(weight.getType());
  return {type.getRank() > 1 ? type.getDimSize(type.getRank() - 2) : 1, type.getShape().back(),
          type.getElementType(), x ? limbsOf(x) : 0};
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

/// Bytes of tensors of static shapes, as they stand in memory; what is null counts nothing.
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

  /// The launch of kernel `base` over `tasks`; returns the new values of the outputs. `spec` names
  /// all that the kernel depends on besides its types.
  mlir::SmallVector<mlir::Value> operator()(llvm::StringRef base, llvm::StringRef spec,
                                            mlir::Value tasks, mlir::ValueRange inputs,
                                            mlir::ValueRange outputs, KernelLibrary::Build build,
                                            const LaunchCost &cost = {});

  /// Extent of the leading axis.
  mlir::Value rowsOf(mlir::Value tensor);
  mlir::Value constant(int64_t value);
  /// An uninitialised tensor of `type`, whose dynamic extents are all `rows`.
  mlir::Value empty(mlir::Type type, mlir::Value rows);

  mlir::ConversionPatternRewriter &rewriter;
  mlir::Location loc;
  KernelLibrary &kernels;
};

void populateRowPatterns(mlir::RewritePatternSet &patterns, const mlir::TypeConverter &converter,
                         KernelLibrary &kernels);
void populateProductPatterns(mlir::RewritePatternSet &patterns,
                             const mlir::TypeConverter &converter, KernelLibrary &kernels);
void populateAttentionPatterns(mlir::RewritePatternSet &patterns,
                               const mlir::TypeConverter &converter, KernelLibrary &kernels);
void populateMoePatterns(mlir::RewritePatternSet &patterns, const mlir::TypeConverter &converter,
                         KernelLibrary &kernels);
void populateWeightPatterns(mlir::RewritePatternSet &patterns, const mlir::TypeConverter &converter,
                            KernelLibrary &kernels);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_LOWERING_LOWERING_H
