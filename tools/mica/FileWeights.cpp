//===- FileWeights.cpp - a checkpoint as a source of the packer -----------===//

#include "tools/mica/FileWeights.h"

#include "frontend/support/InputError.h"

using namespace llvm;

namespace mica::tool {

static std::optional<cpu::WeightType> computedType(const TensorInfo &info) {
  if (info.blocks && !info.blocks->format)
    return std::nullopt;
  switch (info.type) {
  case StoredType::F32:
    return cpu::WeightType::F32;
  case StoredType::BF16:
    return cpu::WeightType::BF16;
  case StoredType::F16:
    return cpu::WeightType::F16;
  default:
    return std::nullopt;
  }
}

Expected<cpu::SourceTensor> FileWeights::find(StringRef name) const {
  const TensorInfo *info = files.find(name);
  // No test: the model was read from these files, which have all tensors, of supported types.
  if (!info)
    return createStringError("the weight files have no tensor " + inQuotes(name));
  std::optional<cpu::WeightType> type = computedType(*info);
  // No test: as above.
  if (!type)
    return inputError(files.pathOf(*info),
                      "tensor " + inQuotes(name) + " is " + storedNameOf(*info) +
                          ", which is not supported",
                      "convert the weights to F32, BF16 or F16");
  cpu::SourceTensor tensor{*type, info->shape, files.bytes(*info)};
  if (const TensorType *blocks = info->blocks)
    tensor.blocks = {blocks->format};
  if (const TensorInfo *scales = files.scalesOf(*info)) {
    tensor.blocks.join = joinMxfp4;
    tensor.scales = files.bytes(*scales);
  }
  return tensor;
}

std::string FileWeights::fileOf(StringRef name) const {
  const TensorInfo *info = files.find(name);
  return info ? files.pathOf(*info).str() : std::string();
}

void FileWeights::release(StringRef name) const {
  const TensorInfo *info = files.find(name);
  if (!info)
    return;
  files.release(*info);
  if (const TensorInfo *scales = files.scalesOf(*info))
    files.release(*scales);
}

} // namespace mica::tool
