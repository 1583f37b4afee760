//===- ModelFile.h - stage `model` from a file ------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_MODELFILE_H
#define MICA_FRONTEND_IMPORT_MODELFILE_H

#include "frontend/import/TensorMatch.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mica {

/// Parses and verifies the `.mlir` file at `path`. It must contain one module with the attribute
/// `mica.model` and a function `@main`. The first diagnostic is returned as the error, with its
/// location. Loads the dialects of stage `model`.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> parseModelFile(mlir::MLIRContext &context,
                                                                 llvm::StringRef path);

/// Checks that `weights` contain every tensor that the weight symbols of `module` refer to, with
/// matching shapes and types. Returns the tensors that the module does not use, sorted by name;
/// they are ignored, because the IR defines the model.
llvm::Expected<std::vector<IgnoredTensor>> matchModule(mlir::ModuleOp module,
                                                       const WeightFiles &weights);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_MODELFILE_H
