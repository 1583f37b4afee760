//===- FileWeights.h - a checkpoint for the packer --------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_FILEWEIGHTS_H
#define MICA_TOOLS_MICA_FILEWEIGHTS_H

#include "backends/cpu/pack/WeightSource.h"
#include "frontend/formats/checkpoint/WeightFiles.h"

namespace mica::tool {

class FileWeights final : public cpu::WeightSource {
public:
  /// `files` must outlive this object.
  explicit FileWeights(const WeightFiles &files) : files(files) {}
  llvm::Expected<cpu::SourceTensor> find(llvm::StringRef name) const override;
  std::string fileOf(llvm::StringRef name) const override;
  void release(llvm::StringRef name) const override;

private:
  const WeightFiles &files;
};

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_FILEWEIGHTS_H
