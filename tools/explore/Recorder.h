//===- Recorder.h - records a compilation -----------------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_RECORDER_H
#define MICA_TOOLS_EXPLORE_RECORDER_H

#include "backends/cpu/driver/Compiler.h"
#include "tools/explore/CodePassLog.h"
#include "tools/explore/PassLog.h"
#include "tools/explore/Provenance.h"

namespace mica::explore {

/// Records a compilation to stage `obj` without changing its result: locations get numbers
/// (Provenance.h), which LLVM keeps as lines of debug information; it is removed before the object
/// is written.
class Recorder final : public cpu::CompileObserver {
public:
  explicit Recorder(mlir::MLIRContext &context) : passes(context) {}

  void onPipeline(Stage stage, mlir::PassManager &passes) override;
  llvm::Error onModule(Stage stage, mlir::ModuleOp module) override;
  void onOptimizer(llvm::Module &code, llvm::PassInstrumentationCallbacks &callbacks) override;
  llvm::Error onCode(llvm::Module &code, llvm::TargetMachine &machine) override;
  llvm::Error onObject(llvm::StringRef object, llvm::StringRef manifest) override;

  Record take();

private:
  void recordStage(Stage stage, mlir::ModuleOp module);
  /// Converts numbers of ops of stage `loops` to lines of debug information.
  llvm::Error numberCode(mlir::ModuleOp module);

  Record record;
  PassLog passes;
  CodePassLog codePasses;
  std::vector<PassRecord> machinePasses;
  OriginTable lines; ///< of instructions: line N has origins N - 1
};

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_RECORDER_H
