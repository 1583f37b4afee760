//===- GgufModel.h - a model in one or several GGUF files -------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_GGUF_GGUFMODEL_H
#define MICA_FRONTEND_FORMATS_GGUF_GGUFMODEL_H

#include "frontend/formats/gguf/GgufFile.h"
#include "frontend/support/MappedFile.h"

namespace mica {

/// The memory-mapped files of a model, with the metadata of the first one and the tensors of all.
class GgufModel {
public:
  /// Opens `path` and, if it is the first of several (`split.count`), the others in the same
  /// folder, which must exist and be consistent with it. Errors name the file and, if applicable,
  /// the key or tensor.
  static llvm::Expected<GgufModel> open(llvm::StringRef path);

  llvm::StringRef path() const { return files.front().path(); }
  /// The value of a key, or null.
  const GgufValue *find(llvm::StringRef key) const;
  const llvm::StringMap<GgufValue> &metadata() const { return header.metadata; }
  llvm::ArrayRef<GgufTensor> tensors() const { return header.tensors; }
  const GgufTensor *findTensor(llvm::StringRef name) const;
  llvm::StringRef pathOf(const GgufTensor &tensor) const { return files[tensor.file].path(); }
  llvm::ArrayRef<uint8_t> bytes(const GgufTensor &tensor) const {
    return files[tensor.file].bytes().slice(tensor.offset, tensor.size);
  }
  /// Moves the mapped files out; no other function may be called afterwards.
  std::vector<MappedFile> takeFiles() { return std::move(files); }

private:
  llvm::Error addPart(unsigned index, unsigned count);
  llvm::Error checkTensorCount() const;

  GgufHeader header;
  llvm::StringMap<unsigned> byName; ///< index in the list of tensors
  std::vector<MappedFile> files;
};

/// Whether MODEL is a GGUF file, by its magic or its name.
bool isGguf(llvm::StringRef path);

/// The files of the model at `path`, determined only by its name.
std::vector<std::string> ggufFiles(llvm::StringRef path);

/// The name of the model: the file name without extension and number.
llvm::StringRef ggufName(llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_GGUF_GGUFMODEL_H
