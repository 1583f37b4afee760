//===- TorchPickle.h - the tensors in a torch pickle ------------*- C++ -*-===//
//
// A torch checkpoint is a pickle: a program for a stack machine that may call any Python function.
// This is that machine without Python: it only supports the instructions and names that a
// dictionary of tensors needs, and rejects all others.
//
//===----------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_FORMATS_TORCH_TORCHPICKLE_H
#define MICA_FRONTEND_FORMATS_TORCH_TORCHPICKLE_H

#include "frontend/formats/tensors/TensorInfo.h"

#include "llvm/Support/Error.h"

#include <vector>

namespace mica {

/// A tensor described by a pickle: elements of a storage, beginning at element `first`, with
/// `shape`, row-major unless there are `strides`; all are within the next `span` elements. The
/// names are views of the pickle.
struct TorchTensor {
  llvm::StringRef name, storage;
  StoredType type = StoredType::F32;
  llvm::SmallVector<int64_t, 4> shape, strides = {};
  uint64_t first = 0, span = 0;
};

/// Reads the tensors of the dictionary in `pickle`, in its order; other entries are rejected.
/// `path` names the file in errors.
llvm::Expected<std::vector<TorchTensor>> readTorchPickle(llvm::ArrayRef<uint8_t> pickle,
                                                         llvm::StringRef path);

/// The content of the concatenated pickles in a file written before torch 1.6.
struct LegacyPickles {
  std::vector<TorchTensor> tensors;
  std::vector<llvm::StringRef> storages; ///< in the order of their data
  bool littleEndian = true;
  llvm::ArrayRef<uint8_t> rest; ///< after the pickles
};

/// Reads the pickles at the beginning of `bytes`: the magic number and the version of the format,
/// properties of the system, the dictionary of tensors, and the names of the storages.
llvm::Expected<LegacyPickles> readLegacyPickles(llvm::ArrayRef<uint8_t> bytes,
                                                llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_TORCH_TORCHPICKLE_H
