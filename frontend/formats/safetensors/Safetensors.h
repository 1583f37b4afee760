//===- Safetensors.h - the header of a safetensors file ---------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_SAFETENSORS_SAFETENSORS_H
#define MICA_FRONTEND_FORMATS_SAFETENSORS_SAFETENSORS_H

#include "frontend/formats/tensors/TensorInfo.h"

#include "llvm/Support/Error.h"

#include <vector>

namespace mica {

/// Reads the header of the safetensors file `bytes`: a little-endian u64 length, a JSON object of
/// that length, then the data. Returns its tensors in the order of their data. `path` names the
/// file in errors.
///
/// Rejects lengths beyond the file or 100 MB; JSON that is invalid, deeply nested or has duplicate
/// names; unknown element types; sizes that are negative, overflow, or disagree with shape and
/// type; and data that overlap, have gaps, or do not end at the end of the file.
llvm::Expected<std::vector<TensorInfo>> readSafetensorsHeader(llvm::ArrayRef<uint8_t> bytes,
                                                              llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_SAFETENSORS_SAFETENSORS_H
