//===- Stages.h - the stages of compilation and the way between them -*- C++ -*-===//
//
// Where the order of passes lives. Each stage is reached from the one before it by a builder, which
// ends with the verifier of the stage boundary. This library knows how to reach `fused`; backends
// add the rest.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_PASSES_PIPELINES_STAGES_H
#define MICA_PASSES_PIPELINES_STAGES_H

#include "passes/Passes.h"

#include "mlir/Pass/PassOptions.h"
#include "llvm/Support/Error.h"

#include <array>

namespace mica {

enum class Stage { Model, Fused, Kernels, Loops, Llvm, Ll, Asm, Obj, Exe };
inline constexpr size_t kStageCount = 9;

struct StageInfo {
  Stage stage;
  llvm::StringRef name;
  llvm::StringRef help;
};

/// All stages in order.
llvm::ArrayRef<StageInfo> getStages();
const StageInfo &getStageInfo(Stage stage);
/// The stage of that name, or nothing.
std::optional<Stage> parseStage(llvm::StringRef name);

/// What the pipelines can be told. Defaults are those of the passes.
struct StageOptions {
  Precision weights = Precision::F32;
  Precision kv = Precision::F32;
  /// The numbers of rows that functions are made for.
  PhaseRows phases = {};
  /// Whether channels are balanced; where it does not say, they are for integers.
  std::optional<bool> equalize = {};
  /// Whether matrices that are stored in blocks keep their format, whatever the precision.
  bool preserveBlocks = false;
  /// What rows of prompts that multiply weights in blocks are where they are exact; where it does
  /// not say, the backend does.
  std::optional<ExactRows> exactRows = {};
  /// What probes show, where there are any.
  std::optional<Probed> probes = {};
};

/// Adds to a pipeline over a module what leads from the stage before to a stage.
using StageBuilder = std::function<void(mlir::OpPassManager &, const StageOptions &)>;

/// How each stage is reached from the one before it.
class StageTable {
public:
  /// The stages that know no processor: `fused`.
  static StageTable graphStages();

  /// Says how `stage` is reached.
  void set(Stage stage, StageBuilder builder) {
    builders[static_cast<size_t>(stage)] = std::move(builder);
  }
  /// Whether `stage` can be reached by a pipeline of passes.
  bool has(Stage stage) const { return static_cast<bool>(builders[static_cast<size_t>(stage)]); }

  /// Adds what leads from `from` to `to`; fails, with nothing added, when `to` is before `from` or
  /// a stage on the way has no builder.
  llvm::Error buildPipeline(mlir::OpPassManager &pm, Stage from, Stage to,
                            const StageOptions &options) const;

private:
  std::array<StageBuilder, kStageCount> builders;
};

/// Stage `model` -> `fused`; begins with the verifier of `model`, which checks what the
/// frontend built.
void buildModelToFused(mlir::OpPassManager &pm, const StageOptions &options);

/// The first passes after `fused`: a function for each phase, which computes what rows of
/// its role do. The interpreter runs what comes out; no kernel is chosen yet. `exactRowsOf` is the
/// backend's choice where the options make none; without it they are bf16.
void buildPhases(mlir::OpPassManager &pm, const StageOptions &options,
                 const ExactRowsOf &exactRowsOf = {});

/// Makes `--mica-to-fused` known to mica-opt.
void registerPipelines();

} // namespace mica

#endif // MICA_PASSES_PIPELINES_STAGES_H
