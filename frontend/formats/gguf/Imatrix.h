//===- Imatrix.h - statistics of activations that llama.cpp has written -*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_GGUF_IMATRIX_H
#define MICA_FRONTEND_FORMATS_GGUF_IMATRIX_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <vector>

namespace mica {

/// What the columns of a tensor have been multiplied with, of each of its matrices.
struct ImatrixEntry {
  /// Mean squares [matrices, columns], finite and not negative. Zeros for a matrix of an expert
  /// that no row was routed to.
  std::vector<float> meanSquares;

  /// Those of matrix `index` of `matrices`. The error names what does not fit.
  llvm::Expected<std::vector<float>> matrix(int64_t index, int64_t matrices) const;
};

/// Entries by the names of tensors in GGUF files.
using Imatrix = llvm::StringMap<ImatrixEntry>;

/// Reads the file `bytes` that llama-imatrix has written: GGUF, with tensors NAME.in_sum2 and
/// NAME.counts, or the older format (counts and lengths as 32-bit integers before names and
/// numbers). `path` names the file in errors.
llvm::Expected<Imatrix> readImatrix(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_GGUF_IMATRIX_H
