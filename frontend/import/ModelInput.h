//===- ModelInput.h - what `mica compile MODEL` starts from -----*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_MODELINPUT_H
#define MICA_FRONTEND_IMPORT_MODELINPUT_H

#include "frontend/import/TensorMatch.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mica {

/// A model at stage `model` with the weights after it.
struct ModelInput {
  /// How most numbers of the matrices of a GGUF file are stored.
  struct Storage {
    std::string type;
    double bits = 0; ///< of a number
  };

  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::optional<WeightFiles> weights; ///< absent in a dry run from a folder without weights
  std::string folder; ///< where the weights and the tokenizer's files stand, or the GGUF file
  std::vector<IgnoredKey> ignoredKeys;       ///< for -v
  std::vector<IgnoredTensor> ignoredTensors; ///< for -v
  std::optional<Storage> storage;            ///< of a GGUF file
  std::optional<ModelConfig> config;         ///< of a folder or a GGUF file
};

enum class WeightsNeeded { Yes, No };

/// Reads MODEL: a Hugging Face folder, a GGUF file, or a `.mlir` file at stage `model`. The weights
/// of FILE.mlir are in the file's own folder or, where that has none, in the folder FILE beside
/// it or FILE.gguf. With WeightsNeeded::No a model without weights is taken as its description has
/// it. Errors are one line: `FILE: what is wrong (where), what to do`.
llvm::Expected<ModelInput> readModel(mlir::MLIRContext &context, llvm::StringRef path,
                                     WeightsNeeded needed = WeightsNeeded::Yes);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_MODELINPUT_H
