//===- GgufModel.h - a model of one GGUF file or several --------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_GGUF_GGUFMODEL_H
#define MICA_FRONTEND_FORMATS_GGUF_GGUFMODEL_H

#include "frontend/formats/gguf/GgufFile.h"
#include "frontend/support/MappedFile.h"

namespace mica {

/// The files of a model, mapped, with the metadata of the first and the tensors of all.
class GgufModel {
public:
  /// Opens `path` and, where it is the first of several (`split.count`), the others beside it,
  /// which must be there and say so. Errors name the file, and the key or tensor where there is
  /// one.
  static llvm::Expected<GgufModel> open(llvm::StringRef path);

  llvm::StringRef path() const { return files.front().path(); }
  /// The value of a key; null where it is absent.
  const GgufValue *find(llvm::StringRef key) const;
  const llvm::StringMap<GgufValue> &metadata() const { return header.metadata; }
  llvm::ArrayRef<GgufTensor> tensors() const { return header.tensors; }
  const GgufTensor *findTensor(llvm::StringRef name) const;
  llvm::StringRef pathOf(const GgufTensor &tensor) const { return files[tensor.file].path(); }
  llvm::ArrayRef<uint8_t> bytes(const GgufTensor &tensor) const {
    return files[tensor.file].bytes().slice(tensor.offset, tensor.size);
  }
  /// Takes the mapped files over; nothing else can be asked afterwards.
  std::vector<MappedFile> takeFiles() { return std::move(files); }

private:
  llvm::Error addPart(unsigned index, unsigned count);
  llvm::Error checkTensorCount() const;

  GgufHeader header;
  llvm::StringMap<unsigned> byName; ///< index among the tensors
  std::vector<MappedFile> files;
};

/// Whether MODEL is to be read as GGUF: it begins so, or is called so.
bool isGguf(llvm::StringRef path);

/// The files that the model at `path` is made of, by name alone.
std::vector<std::string> ggufFiles(llvm::StringRef path);

/// The name of the model: that of its file, without its ending and its number.
llvm::StringRef ggufName(llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_GGUF_GGUFMODEL_H
