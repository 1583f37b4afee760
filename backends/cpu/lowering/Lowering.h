//===- Lowering.h - utilities of the lowering patterns ----------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_LOWERING_LOWERING_H
#define MICA_BACKENDS_CPU_LOWERING_LOWERING_H

#include "backends/cpu/kernels/matmul/Panel.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mica::cpu {

/// The name of a matmul's kernel: `base_NxK`.
inline std::string productName(llvm::StringRef base, int64_t n, int64_t k) {
  return (base + "_" + llvm::Twine(n) + "x" + llvm::Twine(k)).str();
}

/// The properties of a weight [..., N, K] that kernels depend on. `x` are the rows that it
/// multiplies; null if there are none.
inline WeightSpec weightSpecOf(mlir::Value weight, mlir::Value x = {}) {
  auto type = llvm::cast<mlir::RankedTensorType>(weight.getType());
  return {type.getRank() > 1 ? type.getDimSize(type.getRank() - 2) : 1, type.getShape().back(),
          type.getElementType(), x ? integerRowBits(mlir::getElementTypeOrSelf(x)) : 0};
}

/// Whether a weight has a packed layout, which matmuls require.
inline bool isPacked(mlir::Value weight) {
  return llvm::isa_and_nonnull<PackedLayoutAttr>(
      llvm::cast<mlir::RankedTensorType>(weight.getType()).getEncoding());
}

/// Emits an error and fails unless a kernel supports the matmul of the rows `x` and `weight`.
mlir::LogicalResult checkProduct(mlir::Operation *op, mlir::Value x, mlir::Value weight);

/// The number of blocks of 64 columns that cover `n` columns: the number of tasks of a matmul.
inline int64_t blocksOf(int64_t n) { return roundUp(n, kBlockColumns) / kBlockColumns; }

/// The cost of a launch; for the members see `#exec.cost` (ExecOps.td).
struct LaunchCost {
#define MICA_KERNEL_COST(name, Getter) int64_t name = 0;
#include "backends/runtime/abi/KernelCost.def"
#undef MICA_KERNEL_COST

  /// Null if all members are zero.
  exec::CostAttr attribute(mlir::MLIRContext *context) const;
};

/// The sum of the stored sizes in bytes of tensors with static shapes; null values are skipped.
int64_t sizeInBytes(mlir::ValueRange tensors);
/// The size in bytes of one position of one layer of a cache.
int64_t bytesPerPosition(KvCacheType cache);

/// Converts caches, packed weights and quantized tensors to tensors of their physical shapes; other
/// types are unchanged.
class PhysicalTypeConverter : public mlir::TypeConverter {
public:
  PhysicalTypeConverter();
};

/// A pattern that lowers a mica op to launches.
template <typename Op> class Lowering : public mlir::OpConversionPattern<Op> {
public:
  Lowering(const mlir::TypeConverter &converter, mlir::MLIRContext *context, KernelLibrary &kernels)
      : mlir::OpConversionPattern<Op>(converter, context), kernels(kernels) {}

protected:
  KernelLibrary &kernels;
};

/// Emits launches of kernels for one op.
class Launcher {
public:
  Launcher(mlir::ConversionPatternRewriter &rewriter, mlir::Location loc, KernelLibrary &kernels)
      : rewriter(rewriter), loc(loc), kernels(kernels) {}

  /// Launches kernel `base` over `tasks`; returns the new values of the outputs. `identity` has all
  /// parameters that its body depends on besides its types: see `parameters`.
  mlir::SmallVector<mlir::Value> operator()(llvm::StringRef base, mlir::ArrayAttr identity,
                                            mlir::Value tasks, mlir::ValueRange inputs,
                                            mlir::ValueRange outputs, KernelLibrary::Build build,
                                            const LaunchCost &cost = {});

  /// The same with a task per row of the first input, and a new tensor of type `type` as the
  /// output.
  mlir::Value overRows(llvm::StringRef base, mlir::ArrayAttr identity, mlir::ValueRange inputs,
                       mlir::Type type, KernelLibrary::Build build, const LaunchCost &cost = {});

  /// Converts numbers, booleans, strings, types and attributes to the parameters that identify a
  /// kernel.
  template <typename... Parts> mlir::ArrayAttr parameters(const Parts &...parts) {
    std::array<mlir::Attribute, sizeof...(parts)> all{parameter(parts)...};
    return rewriter.getArrayAttr(all);
  }

  /// The extent of the first axis.
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
