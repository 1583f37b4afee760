//===- SlicedSource.h - parts of tensors as tensors -------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_SLICEDSOURCE_H
#define MICA_BACKENDS_CPU_PACK_SLICEDSOURCE_H

#include "backends/cpu/pack/WeightSource.h"

#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace mica::cpu {

/// Extracts parts of the tensors of a checkpoint. Parts with contiguous rows are not copied; copies
/// of other parts are kept until they are released.
class SlicedSource final : public PartSource {
public:
  /// `whole` must outlive this object.
  explicit SlicedSource(const WeightSource &whole) : whole(whole) {}

  llvm::Expected<SourceTensor> find(mlir::Attribute source) const override;
  std::string fileOf(mlir::Attribute source) const override;
  void release(mlir::Attribute source) const override;

private:
  const WeightSource &whole;
  mutable llvm::DenseMap<mlir::Attribute, std::vector<uint8_t>> copies;
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_SLICEDSOURCE_H
