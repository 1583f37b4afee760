//===- ReferenceModel.h - a model that the interpreter runs -----------------===//
#ifndef MICA_TOOLS_MICA_REFERENCEMODEL_H
#define MICA_TOOLS_MICA_REFERENCEMODEL_H

#include "backends/cpu/compile/Compiler.h"
#include "frontend/import/ModelInput.h"
#include "ir/Interpreter/Interpreter.h"

namespace mica::tool {

/// A model at stage `fused` with probes, as `mica verify` interprets it.
class ReferenceModel {
public:
  /// What MODEL is and how it is rounded: as a program of precision `stages.weights` and
  /// `stages.kv` has its ops. Weights keep the blocks of a GGUF file where `asked`, the precision
  /// that was asked for, is empty.
  static llvm::Expected<std::unique_ptr<ReferenceModel>>
  open(const std::string &model, llvm::StringRef asked, StageOptions stages);

  /// The dialects of models.
  static mlir::DialectRegistry registry();

  /// The logits of all positions of a text, [ids, vocab]. `trace` sees every op.
  llvm::Expected<std::vector<float>> logits(llvm::ArrayRef<int32_t> ids,
                                            interp::TraceHook trace) const;

  /// How many positions attention reaches back, where that is not all of them; ascending.
  llvm::SmallVector<int64_t> windows() const;

private:
  ReferenceModel() : context(registry()) {}
  llvm::Expected<std::vector<interp::Value>> makeInputs(llvm::ArrayRef<int32_t> ids) const;

  // The module lives shorter than its context.
  mutable mlir::MLIRContext context;
  ModelInput input;
  mlir::func::FuncOp main;
};

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_REFERENCEMODEL_H
