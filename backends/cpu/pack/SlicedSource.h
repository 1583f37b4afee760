//===- SlicedSource.h - parts of tensors as tensors -------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_SLICEDSOURCE_H
#define MICA_BACKENDS_CPU_PACK_SLICEDSOURCE_H

#include "backends/cpu/pack/WeightSource.h"

#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace mica::cpu {

/// Takes parts out of the tensors of a checkpoint. Rows that lie together are not copied; other
/// parts are, and kept until they are released.
class SlicedSource final : public PartSource {
public:
  /// `whole` must live as long as this.
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
