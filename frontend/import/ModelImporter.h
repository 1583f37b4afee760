//===- ModelImporter.h - a config and its weights to stage `model` -*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_MODELIMPORTER_H
#define MICA_FRONTEND_IMPORT_MODELIMPORTER_H

#include "frontend/import/WeightPlan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mica {

/// Builds the module of stage `model` (see ir/README.md): `plan` with its types as `mica.weight`
/// symbols, one function per layer type, `@main` that calls them. Layers whose weights have
/// different types are different kinds. The cache is f32 and activations are f32: what the model
/// means. `name` becomes the module's. Loads the dialects it needs.
mlir::OwningOpRef<mlir::ModuleOp> importModel(mlir::MLIRContext &context, const ModelConfig &model,
                                              const WeightPlan &plan, llvm::StringRef name);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_MODELIMPORTER_H
