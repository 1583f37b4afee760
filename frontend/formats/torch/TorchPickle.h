//===- TorchPickle.h - the tensors that a pickle of torch describes -*- C++ -*-===//
//
// A checkpoint of torch is a pickle: a program for a machine with a stack, which may call anything
// in Python. This is that machine without Python: it knows the few instructions and the few names
// that a dictionary of tensors needs, and refuses all others by name.
//
//===----------------------------------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_FORMATS_TORCH_TORCHPICKLE_H
#define MICA_FRONTEND_FORMATS_TORCH_TORCHPICKLE_H

#include "frontend/formats/tensors/TensorInfo.h"

#include "llvm/Support/Error.h"

#include <vector>

namespace mica {

/// A tensor as a pickle describes it: `shape` of the elements of a storage, from element `first`
/// on, row-major unless there are `strides`; all within the next `span` elements. The names lie in
/// the pickle.
struct TorchTensor {
  llvm::StringRef name, storage;
  StoredType type = StoredType::F32;
  llvm::SmallVector<int64_t, 4> shape, strides = {};
  uint64_t first = 0, span = 0;
};

/// The tensors of the dictionary that `pickle` makes, in its order; entries of other kinds are
/// refused. `path` names the file in errors.
llvm::Expected<std::vector<TorchTensor>> readTorchPickle(llvm::ArrayRef<uint8_t> pickle,
                                                         llvm::StringRef path);

/// What pickles that follow each other in a file of torch before 1.6 describe.
struct LegacyPickles {
  std::vector<TorchTensor> tensors;
  std::vector<llvm::StringRef> storages; ///< in the order of their data
  bool littleEndian = true;
  llvm::ArrayRef<uint8_t> rest; ///< after the pickles
};

/// Reads the pickles that `bytes` begins with: the magic number and the version of the format,
/// what is known of the machine, the dictionary of tensors, and the names of the storages.
llvm::Expected<LegacyPickles> readLegacyPickles(llvm::ArrayRef<uint8_t> bytes,
                                                llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_TORCH_TORCHPICKLE_H
