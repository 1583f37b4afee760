//===- Imatrix.h - llama.cpp's statistics of activations --------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_GGUF_IMATRIX_H
#define MICA_FRONTEND_FORMATS_GGUF_IMATRIX_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <vector>

namespace mica {

/// The statistics of the activations that the columns of a tensor are multiplied by, for each of
/// its matrices.
struct ImatrixEntry {
  /// Mean squares [matrices, columns], finite and not negative. Zero for the matrices of experts
  /// that no row was routed to.
  std::vector<float> meanSquares;

  /// The mean squares of matrix `index` of `matrices`. The error describes the mismatch.
  llvm::Expected<std::vector<float>> matrix(int64_t index, int64_t matrices) const;
};

/// Entries by the names of tensors in GGUF files.
using Imatrix = llvm::StringMap<ImatrixEntry>;

/// Reads a file written by llama-imatrix: GGUF, with tensors NAME.in_sum2 and NAME.counts, or the
/// older format (counts and lengths as 32-bit integers before names and numbers). `path` names the
/// file in errors.
llvm::Expected<Imatrix> readImatrix(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_GGUF_IMATRIX_H
