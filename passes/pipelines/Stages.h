//===- Stages.h - the pipelines between stages ------------------*- C++ -*-===//
//
// The order of passes. A builder leads from each stage to the next and ends with the verifier of
// the stage boundary. This library has the builder of `fused`; backends add the others.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_PASSES_PIPELINES_STAGES_H
#define MICA_PASSES_PIPELINES_STAGES_H

#include "passes/Passes.h"
#include "passes/support/Stage.h"

#include "mlir/Pass/PassOptions.h"
#include "llvm/Support/Error.h"

#include <array>

namespace mica {

/// The options of the pipelines. Defaults are those of the passes.
struct StageOptions {
  Precision weights = Precision::F32;
  Precision kv = Precision::F32;
  /// The row limits for which functions are specialized.
  PhaseRows phases = {};
  /// Whether channels are equalized; default: if weights are quantized to integers.
  std::optional<bool> equalize = {};
  /// Whether matrices keep the block formats in which they are stored, independently of the
  /// precision.
  bool preserveBlocks = false;
  /// The type of exact activations multiplied by block-quantized weights in prefill; default: the
  /// backend's choice.
  std::optional<ExactRows> exactRows = {};
  /// The number of processes that run the model together.
  int64_t ranks = 1;
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

/// Stage `model` -> `fused`; begins with the verifier of `model`, which checks the frontend's
/// output.
void buildModelToFused(mlir::OpPassManager &pm, const StageOptions &options);

/// The first passes after `fused`: specialize functions for each phase and assign the activation
/// types of prompts. The interpreter can run the result; no kernels are selected yet. `exactRowsOf`
/// is the backend's choice if the options have none; without it, exact rows are bf16.
void buildPhases(mlir::OpPassManager &pm, const StageOptions &options,
                 const ExactRowsOf &exactRowsOf = {});

/// Registers the pipeline `--mica-to-fused`.
void registerPipelines();

} // namespace mica

#endif // MICA_PASSES_PIPELINES_STAGES_H
