//===- ModelInput.h - the input of `mica compile` ---------------*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_MODELINPUT_H
#define MICA_FRONTEND_IMPORT_MODELINPUT_H

#include "frontend/import/TensorMatch.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mica {

/// A model at stage `model` with its weights.
struct ModelInput {
  /// The type of most elements of the matrices in a GGUF file.
  struct Storage {
    std::string type;
    double bits = 0; ///< bits per number
  };

  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::optional<WeightFiles> weights; ///< absent in a dry run from a folder without weights
  std::string folder; ///< folder of the weights and the tokenizer's files, or the GGUF file
  std::vector<IgnoredKey> ignoredKeys;       ///< for -v
  std::vector<IgnoredTensor> ignoredTensors; ///< for -v
  std::optional<Storage> storage;            ///< of a checkpoint with blocks, or a GGUF file
  std::optional<ModelConfig> config;         ///< of a folder or a GGUF file
};

enum class WeightsNeeded { Yes, No };

/// Reads MODEL: a Hugging Face folder, a GGUF file, or a `.mlir` file at stage `model`. The weights
/// of FILE.mlir are in the same folder or, if that has none, in the adjacent folder FILE or in
/// FILE.gguf. With WeightsNeeded::No, a model without weights is accepted. With MtpHead::Kept, a
/// folder must have a multi-token prediction head, and other inputs are rejected. Errors are
/// one line: `FILE: problem; hint`.
llvm::Expected<ModelInput> readModel(mlir::MLIRContext &context, llvm::StringRef path,
                                     WeightsNeeded needed = WeightsNeeded::Yes,
                                     MtpHead mtp = MtpHead::LeftOut);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_MODELINPUT_H
