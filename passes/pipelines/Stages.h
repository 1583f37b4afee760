//===- Stages.h - the stages of compilation and the way between them -*- C++ -*-===//
//
// The order of passes. A builder leads from each stage to the next and ends with the verifier of
// the stage boundary. This library has the builder of `fused`; backends add the others.
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

/// The options of the pipelines. Defaults are those of the passes.
struct StageOptions {
  Precision weights = Precision::F32;
  Precision kv = Precision::F32;
  /// The numbers of rows for which functions are specialized.
  PhaseRows phases = {};
  /// Whether channels are equalized; default: if weights are quantized to integers.
  std::optional<bool> equalize = {};
  /// Whether matrices that are stored in blocks are preserved, independently of the precision.
  bool preserveBlocks = false;
  /// The type of exact activations multiplied by block-quantized weights in prefill; default: the
  /// backend's choice.
  std::optional<ExactRows> exactRows = {};
  /// What probes record, if there are any.
  std::optional<Probed> probes = {};
};

/// Adds the passes from the previous stage to a stage to a pipeline over a module.
using StageBuilder = std::function<void(mlir::OpPassManager &, const StageOptions &)>;

/// The builders of all stages.
class StageTable {
public:
  /// The stages that do not depend on the processor: `fused`.
  static StageTable graphStages();

  /// Sets the builder of `stage`.
  void set(Stage stage, StageBuilder builder) {
    builders[static_cast<size_t>(stage)] = std::move(builder);
  }
  /// Whether `stage` can be reached by a pipeline of passes.
  bool has(Stage stage) const { return static_cast<bool>(builders[static_cast<size_t>(stage)]); }

  /// Adds the passes from `from` to `to`; fails without adding any if `to` is before `from` or a
  /// stage in between has no builder.
  llvm::Error buildPipeline(mlir::OpPassManager &pm, Stage from, Stage to,
                            const StageOptions &options) const;

private:
  std::array<StageBuilder, kStageCount> builders;
};

/// Stage `model` -> `fused`; begins with the verifier of `model`, which checks what the
/// frontend built.
void buildModelToFused(mlir::OpPassManager &pm, const StageOptions &options);

/// The first passes after `fused`: functions for each phase, with the arithmetic of its role. The
/// interpreter can run the result; no kernels are selected yet. `exactRowsOf` is the backend's
/// choice if the options make none; without it, exact rows are bf16.
void buildPhases(mlir::OpPassManager &pm, const StageOptions &options,
                 const ExactRowsOf &exactRowsOf = {});

/// Registers the pipeline `--mica-to-fused`.
void registerPipelines();

} // namespace mica

#endif // MICA_PASSES_PIPELINES_STAGES_H
