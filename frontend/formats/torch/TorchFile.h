//===- TorchFile.h - checkpoints written by torch.save ----------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_TORCH_TORCHFILE_H
#define MICA_FRONTEND_FORMATS_TORCH_TORCHFILE_H

#include "frontend/formats/tensors/TensorInfo.h"

#include "llvm/Support/Error.h"

#include <vector>

namespace mica {

/// Reads the tensors of a file. Since torch 1.6 it is a zip archive with a pickle that describes
/// them (TorchPickle) and a file for each storage; before, pickles and storages were concatenated.
/// No code in the pickle is executed. All tensors are within the file; several may share their
/// bytes. The pickle is checked by its checksum in the archive; tensors are not, because all of
/// them would have to be read (safetensors has no checksums).
llvm::Expected<std::vector<TensorInfo>> readTorchFile(llvm::ArrayRef<uint8_t> bytes,
                                                      llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_TORCH_TORCHFILE_H
