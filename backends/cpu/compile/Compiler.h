//===- Compiler.h - from stage model to any later one --------------------------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_COMPILE_COMPILER_H
#define MICA_BACKENDS_CPU_COMPILE_COMPILER_H

#include "backends/cpu/compile/Measurements.h"
#include "backends/cpu/compile/ProgramFacts.h"
#include "backends/cpu/pack/WeightSource.h"
#include "passes/pipelines/Stages.h"

#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <optional>

namespace mica::cpu {

struct CompileOptions {
  TargetDescription target;
  std::optional<Precision> weights; ///< absent: the checkpoint's own, f16 becoming bf16
  std::optional<Precision> kv;      ///< absent: f32 where the weights are f32, else bf16
  std::optional<int64_t> maxSeq;    ///< absent: the model's own, at most 8192
  Stage emit = Stage::Exe;
  std::string dumpFolder;    ///< every stage on the way is written there; empty: none
  bool measureBytes = false; ///< fill StageMeasurement::bytes, which takes time
  std::string launcher;      ///< path of the launcher, for a program
  llvm::ArrayRef<std::byte> tokenizer;
  std::function<void(llvm::StringRef stage)> onStage = {};
  std::function<void(uint64_t done, uint64_t all)> onPacked = {};
};

struct CompileResult {
  std::vector<StageMeasurement> stages;
  std::optional<ProgramFacts> facts; ///< from stage `kernels` on
};

/// Compiles `module`, at stage `model`, up to `options.emit` and writes that to `output`; "-" is stdout, and a program wants a path.
/// `source` may be null below stage `exe`. The module is changed. Errors are `what is wrong (where), what to do`.
llvm::Expected<CompileResult> compile(mlir::ModuleOp module, const WeightSource *source, const CompileOptions &options,
                                      llvm::StringRef output);

/// Runs the passes from stage `model` to `last`, at most `llvm`, and nothing else.
llvm::Error lowerTo(mlir::ModuleOp module, Stage last, const CompileOptions &options);

/// The stages that passes reach, for a target.
StageTable stagesFor(const TargetDescription &target);

/// What the passes are told: precisions as asked for or as the checkpoint has them.
StageOptions stageOptionsFor(mlir::ModuleOp module, const CompileOptions &options);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_COMPILE_COMPILER_H
