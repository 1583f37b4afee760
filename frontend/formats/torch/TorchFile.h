//===- TorchFile.h - a checkpoint as torch.save writes it -------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_TORCH_TORCHFILE_H
#define MICA_FRONTEND_FORMATS_TORCH_TORCHFILE_H

#include "frontend/formats/tensors/TensorInfo.h"

#include "llvm/Support/Error.h"

#include <vector>

namespace mica {

/// The tensors of the file `bytes`. From torch 1.6 on it is a zip archive with a pickle that
/// describes them (TorchPickle) and a file for each storage; before, pickles and storages follow
/// each other. Nothing of the pickle is run. All
/// tensors lie in the file; several may share their bytes. The pickle is checked by the archive's
/// checksum of it; the tensors are not, which would read all of them (safetensors has none).
llvm::Expected<std::vector<TensorInfo>> readTorchFile(llvm::ArrayRef<uint8_t> bytes,
                                                      llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_TORCH_TORCHFILE_H
