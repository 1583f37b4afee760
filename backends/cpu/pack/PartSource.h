//===- PartSource.h - parts of tensors as tensors -------------------------===//
#ifndef MICA_BACKENDS_CPU_PACK_PARTSOURCE_H
#define MICA_BACKENDS_CPU_PACK_PARTSOURCE_H

#include "backends/cpu/pack/WeightSource.h"

#include "llvm/ADT/StringMap.h"

#include <vector>

namespace mica::cpu {

/// Finds what sources of weights name (see ir/Mica/TensorPart.h) in the tensors of another source.
/// Rows that lie together are not copied; other parts are, and kept until they are released.
class PartSource final : public WeightSource {
public:
  /// `whole` must live as long as this.
  explicit PartSource(const WeightSource &whole) : whole(whole) {}

  llvm::Expected<SourceTensor> find(llvm::StringRef name) const override;
  std::string fileOf(llvm::StringRef name) const override;
  void release(llvm::StringRef name) const override;

private:
  const WeightSource &whole;
  mutable llvm::StringMap<std::vector<uint8_t>> copies;
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_PARTSOURCE_H
