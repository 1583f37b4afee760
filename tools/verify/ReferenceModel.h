//===- ReferenceModel.h - a model that the interpreter runs -----*- C++ -*-===//
#ifndef MICA_TOOLS_VERIFY_REFERENCEMODEL_H
#define MICA_TOOLS_VERIFY_REFERENCEMODEL_H

#include "backends/cpu/driver/Compiler.h"
#include "backends/runtime/abi/RowRole.h"
#include "frontend/import/ModelInput.h"
#include "ir/Interpreter/Interpreter.h"

namespace mica::tool {

/// The name of the role in the attribute `mica.row_role` of functions.
llvm::StringRef nameOf(rt::RowRole role);

/// A model at stage `fused` with probes, interpreted by `mica verify`; with a function for each
/// role if prefill uses another activation type than decoding.
class ReferenceModel {
public:
  /// Whether the rounding of rows depends on their role.
  enum class Roles { Separate, Equal };

  /// Opens MODEL, rounded and with ops as in a program with the precisions `stages.weights` and
  /// `stages.kv`. Weights keep the blocks of a GGUF file if `asked`, the requested precision, is
  /// empty. `promptRows`: that of the program, whatever the model states. `mtp`: as in the program;
  /// a multi-token prediction head itself is not run.
  static llvm::Expected<std::unique_ptr<ReferenceModel>>
  open(const std::string &model, llvm::StringRef asked, StageOptions stages, PromptRows promptRows,
       Roles roles, MtpHead mtp);

  /// The dialects of models.
  static mlir::DialectRegistry registry();

  /// The logits of all positions of a text, [ids, vocab], whose rows all have this role. `trace` is
  /// called for every op.
  llvm::Expected<std::vector<float>> logits(llvm::ArrayRef<int32_t> ids, rt::RowRole role,
                                            interp::TraceHook trace) const;

  /// The sizes of sliding windows in attention, ascending.
  llvm::SmallVector<int64_t> windows() const;

private:
  ReferenceModel() : context(registry()) {}
  mlir::func::FuncOp entryOf(rt::RowRole role) const;
  llvm::Expected<std::vector<interp::Value>> makeInputs(mlir::func::FuncOp entry,
                                                        llvm::ArrayRef<int32_t> ids) const;

  // The context must outlive the module.
  mutable mlir::MLIRContext context;
  ModelInput input;
};

} // namespace mica::tool

#endif // MICA_TOOLS_VERIFY_REFERENCEMODEL_H
