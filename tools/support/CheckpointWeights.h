//===- CheckpointWeights.h - weights for the interpreter --------*- C++ -*-===//

#ifndef MICA_TOOLS_SUPPORT_CHECKPOINTWEIGHTS_H
#define MICA_TOOLS_SUPPORT_CHECKPOINTWEIGHTS_H

#include "frontend/formats/checkpoint/WeightFiles.h"
#include "ir/Interpreter/Interpreter.h"

namespace mica {

/// The tensor `name` of `files`, in its stored element type.
llvm::Expected<interp::Tensor> storedTensor(const WeightFiles &files, llvm::StringRef name,
                                            mlir::MLIRContext *context);

/// The tensors of `folder`: those of its safetensors files or, if it has none, a file NAME.npy
/// each. Null if the path is empty.
llvm::Expected<interp::WeightProvider> checkpointWeights(llvm::StringRef folder,
                                                         mlir::MLIRContext *context);

} // namespace mica

#endif // MICA_TOOLS_SUPPORT_CHECKPOINTWEIGHTS_H
