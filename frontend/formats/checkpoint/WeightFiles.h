//===- WeightFiles.h - the weights of a model folder ------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_CHECKPOINT_WEIGHTFILES_H
#define MICA_FRONTEND_FORMATS_CHECKPOINT_WEIGHTFILES_H

#include "frontend/formats/tensors/TensorInfo.h"
#include "frontend/support/MappedFile.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <vector>

namespace mica {

/// The memory-mapped files with the weights of a model. Stores only names, shapes and offsets; the
/// data remain in the files, so that memory does not grow with the model.
class WeightFiles {
public:
  /// Opens `folder`/model.safetensors or, if absent, the shards listed in
  /// model.safetensors.index.json; otherwise the same for pytorch_model.bin. Errors name the file
  /// and, if applicable, the tensor.
  static llvm::Expected<WeightFiles> open(llvm::StringRef folder);

  /// Uses `tensors` that are within `files`, as checked by the caller; `source` is the path that
  /// was opened. Fails if a tensor with `isNegatedExp` contains a value that is not -exp(x).
  static llvm::Expected<WeightFiles> of(llvm::StringRef source, std::vector<MappedFile> files,
                                        std::vector<TensorInfo> tensors);
  /// Whether `folder` contains weights (a dry run needs none).
  static bool present(llvm::StringRef folder);

  /// The tensor with this name, or null.
  const TensorInfo *find(llvm::StringRef name) const;

  /// All tensors, by file and in the order of their data.
  llvm::ArrayRef<TensorInfo> tensors() const { return infos; }

  /// The tensor with the block scales of `tensor`, one byte each; null if they are stored in the
  /// blocks.
  const TensorInfo *scalesOf(const TensorInfo &tensor) const {
    return tensor.scales ? &infos[*tensor.scales] : nullptr;
  }

  /// The data of `tensor` in row-major order and its type, valid until `release`. A copy if the
  /// file stores them differently. Not thread-safe.
  llvm::ArrayRef<uint8_t> bytes(const TensorInfo &tensor) const;

  /// Releases the data of `tensor` after use: frees a copy, and drops the file's pages, which the
  /// next access reads again.
  void release(const TensorInfo &tensor) const;

  /// The folder or file that was opened, for messages.
  llvm::StringRef folder() const { return folderPath; }

  /// The path of the file that holds `tensor`, for messages.
  llvm::StringRef pathOf(const TensorInfo &tensor) const { return files[tensor.file].path(); }

private:
  /// Reads the list of tensors of a file.
  using HeaderReader = llvm::Expected<std::vector<TensorInfo>>(llvm::ArrayRef<uint8_t> bytes,
                                                               llvm::StringRef path);

  llvm::Error add(llvm::StringRef path, HeaderReader *readHeader);
  llvm::Error addShards(llvm::StringRef indexPath, llvm::StringRef extension,
                        HeaderReader *readHeader);
  void joinScales();
  llvm::Error addTensor(TensorInfo tensor, llvm::StringRef path);
  llvm::ArrayRef<uint8_t> stored(const TensorInfo &tensor) const;

  std::string folderPath;
  std::vector<MappedFile> files;
  std::vector<TensorInfo> infos;
  llvm::StringMap<unsigned> byName;
  mutable llvm::StringMap<std::vector<uint8_t>> copies; ///< by tensor name
};

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_CHECKPOINT_WEIGHTFILES_H
