//===- WeightFiles.h - the weights of a model folder ------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_CHECKPOINT_WEIGHTFILES_H
#define MICA_FRONTEND_FORMATS_CHECKPOINT_WEIGHTFILES_H

#include "frontend/formats/tensors/TensorInfo.h"
#include "frontend/support/MappedFile.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <vector>

namespace mica {

/// The files with the weights of a model, mapped. Holds names, shapes and places; the data stay
/// in the files, so that memory does not grow with the model.
class WeightFiles {
public:
  /// Opens `folder`/model.safetensors or, where that is absent, the shards that
  /// model.safetensors.index.json names; else the same of pytorch_model.bin. Errors name the file,
  /// and the tensor where there is one.
  static llvm::Expected<WeightFiles> open(llvm::StringRef folder);

  /// `tensors` that lie in `files`, already checked to do so; `source` is what was opened.
  static llvm::Expected<WeightFiles> of(llvm::StringRef source, std::vector<MappedFile> files,
                                        std::vector<TensorInfo> tensors);
  /// Whether `folder` has weights to open at all (a dry run has none).
  static bool present(llvm::StringRef folder);

  /// The tensor of that name, null where there is none.
  const TensorInfo *find(llvm::StringRef name) const;

  /// All tensors, file by file in the order of their data.
  llvm::ArrayRef<TensorInfo> tensors() const { return infos; }

  /// The tensor with the scales of the blocks of `tensor`, one byte each; null where they are in
  /// the blocks.
  const TensorInfo *scalesOf(const TensorInfo &tensor) const {
    return tensor.scales ? &infos[*tensor.scales] : nullptr;
  }

  /// The data of `tensor` row-major and in its type, valid until `release`. Where they lie
  /// otherwise in the file they are a copy. Not to be called from several threads at once.
  llvm::ArrayRef<uint8_t> bytes(const TensorInfo &tensor) const;

  /// Says that the data of `tensor` were consumed: a copy is freed, and their pages are dropped,
  /// and read again if touched again.
  void release(const TensorInfo &tensor) const;

  /// The folder or file that was opened, for messages.
  llvm::StringRef folder() const { return folderPath; }

  /// The path of the file that holds `tensor`, for messages.
  llvm::StringRef pathOf(const TensorInfo &tensor) const { return files[tensor.file].path(); }

private:
  /// Gives the tensors of a file.
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
  mutable llvm::StringMap<std::vector<uint8_t>> copies; ///< by the names of their tensors
};

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_CHECKPOINT_WEIGHTFILES_H
