//===- GgufFile.h - the header of a GGUF file -------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_GGUF_GGUFFILE_H
#define MICA_FRONTEND_FORMATS_GGUF_GGUFFILE_H

#include "frontend/formats/gguf/GgufValue.h"
#include "frontend/formats/gguf/TensorTypes.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mica {

/// The location of a tensor: `size` bytes at `offset` of its file. The shape is row-major: the
/// elements of the last dimension are adjacent.
struct GgufTensor {
  std::string name;
  const TensorType *type = nullptr;
  llvm::SmallVector<int64_t, 4> shape;
  uint64_t offset = 0, size = 0;
  unsigned file = 0; ///< index among the files of a GgufModel
};

/// The header of a file.
struct GgufHeader {
  uint32_t version = 0;
  llvm::StringMap<GgufValue> metadata;
  std::vector<GgufTensor> tensors; ///< in the order of their data
};

/// Reads the header of the file `bytes`, which must outlive it; `path` names the file in errors.
///
/// Rejects versions other than 2 and 3, big-endian files, counts and lengths beyond the file,
/// duplicate keys and tensors, unknown value and tensor types, arrays nested deeper than 4, and
/// tensors that have more than 4 dimensions, whose sizes overflow or are not whole blocks, or that
/// are not aligned, extend beyond the file or overlap.
llvm::Expected<GgufHeader> readGgufHeader(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef path);

/// Whether a file begins with the magic of GGUF files of any version.
bool beginsAsGguf(llvm::ArrayRef<uint8_t> bytes);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_GGUF_GGUFFILE_H
