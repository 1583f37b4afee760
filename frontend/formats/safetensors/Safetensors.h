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
/// Refused: a length beyond the file or beyond 100 MB; JSON that is broken, deep or repeats a name;
/// unknown element types; sizes that are negative, overflow, or disagree with shape and type; data
/// that overlap, leave gaps, or end before or after the file does.
llvm::Expected<std::vector<TensorInfo>> readSafetensorsHeader(llvm::ArrayRef<uint8_t> bytes,
                                                              llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_SAFETENSORS_SAFETENSORS_H
