//===- ModelImporter.h - import a model to stage `model` --------*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_MODELIMPORTER_H
#define MICA_FRONTEND_IMPORT_MODELIMPORTER_H

#include "frontend/import/WeightPlan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mica {

/// Builds the module of stage `model` (see ir/README.md): the weights of `plan`, with its types, as
/// `mica.weight` symbols, one function per layer type, and `@main`, which calls them. Layers whose
/// weights have different types have different functions. Caches and activations are f32, which
/// defines the semantics of the model. `name` is the name of the module. Loads the required
/// dialects.
mlir::OwningOpRef<mlir::ModuleOp> importModel(mlir::MLIRContext &context, const ModelConfig &model,
                                              const WeightPlan &plan, llvm::StringRef name);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_MODELIMPORTER_H
