//===- ReferenceModel.h - a model that the interpreter runs -----*- C++ -*-===//
#ifndef MICA_TOOLS_VERIFY_REFERENCEMODEL_H
#define MICA_TOOLS_VERIFY_REFERENCEMODEL_H

#include "backends/cpu/driver/Compiler.h"
#include "backends/runtime/abi/RowRole.h"
#include "frontend/import/ModelInput.h"
#include "ir/Interpreter/Interpreter.h"

namespace mica::tool {

/// The role as `mica.row_role` of functions names it.
llvm::StringRef nameOf(rt::RowRole role);

/// A model at stage `fused` with probes, as `mica verify` interprets it; with a function for each
/// role where rows of prompts are computed in another arithmetic than those of decoding.
class ReferenceModel {
public:
  /// Whether rows are rounded by their role.
  enum class Roles { Separate, Equal };

  /// What MODEL is and how it is rounded: as a program of precision `stages.weights` and
  /// `stages.kv` has its ops. Weights keep the blocks of a GGUF file where `asked`, the precision
  /// that was asked for, is empty. `promptRows`: the program's, whatever the model states.
  static llvm::Expected<std::unique_ptr<ReferenceModel>> open(const std::string &model,
                                                              llvm::StringRef asked,
                                                              StageOptions stages,
                                                              PromptRows promptRows, Roles roles);

  /// The dialects of models.
  static mlir::DialectRegistry registry();

  /// The logits of all positions of a text, [ids, vocab], whose rows all have this role. `trace`
  /// sees every op.
  llvm::Expected<std::vector<float>> logits(llvm::ArrayRef<int32_t> ids, rt::RowRole role,
                                            interp::TraceHook trace) const;

  /// How many positions attention reaches back, where that is not all of them; ascending.
  llvm::SmallVector<int64_t> windows() const;

private:
  ReferenceModel() : context(registry()) {}
  mlir::func::FuncOp entryOf(rt::RowRole role) const;
  llvm::Expected<std::vector<interp::Value>> makeInputs(mlir::func::FuncOp entry,
                                                        llvm::ArrayRef<int32_t> ids) const;

  // The module lives shorter than its context.
  mutable mlir::MLIRContext context;
  ModelInput input;
};

} // namespace mica::tool

#endif // MICA_TOOLS_VERIFY_REFERENCEMODEL_H
