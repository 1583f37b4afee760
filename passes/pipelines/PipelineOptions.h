//===- PipelineOptions.h - options of mica-opt's pipelines ------*- C++ -*-===//

#ifndef MICA_PASSES_PIPELINES_PIPELINEOPTIONS_H
#define MICA_PASSES_PIPELINES_PIPELINEOPTIONS_H

#include "passes/pipelines/Stages.h"

#include "mlir/Pass/PassOptions.h"

namespace mica {

/// The options of a named pipeline, combined from `Parts`. Each part is constructed with the
/// options object that it registers itself with.
template <typename... Parts>
struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions<Parts...>>, Parts... {
  PipelineOptions() : Parts(static_cast<mlir::detail::PassOptions &>(*this))... {}
};

template <typename T> using PipelineOption = mlir::detail::PassOptions::Option<T>;

/// Options of the pipeline from stage `model` to `fused`.
struct FusionOptions {
  explicit FusionOptions(mlir::detail::PassOptions &options)
      : weights(options, "weights", llvm::cl::desc("precision of matrices"),
                llvm::cl::init(StageOptions().weights), precisionValues()),
        kv(options, "kv", llvm::cl::desc("precision of caches"), llvm::cl::init(StageOptions().kv),
           precisionValues()),
        preserveBlocks(options, "preserve-blocks",
                       llvm::cl::desc("preserve the block formats in which weights are stored"),
                       llvm::cl::init(StageOptions().preserveBlocks)),
        ranks(options, "ranks", llvm::cl::desc("number of processes that run the model together"),
              llvm::cl::init(StageOptions().ranks)) {}

  void addTo(StageOptions &stage) const {
    stage.weights = weights;
    stage.kv = kv;
    stage.preserveBlocks = preserveBlocks;
    stage.ranks = ranks;
  }

  PipelineOption<Precision> weights, kv;
  PipelineOption<bool> preserveBlocks;
  PipelineOption<int64_t> ranks;
};

/// Options of the passes that specialize functions for prefill and decode.
struct PhaseOptions {
  explicit PhaseOptions(mlir::detail::PassOptions &options)
      : exactRows(options, "exact-rows",
                  llvm::cl::desc("activation type of preserved blocks in prefill "
                                 "(default: that of the target)"),
                  exactRowsValues()),
        gemmThreshold(
            options, "gemm-threshold",
            llvm::cl::desc("maximum number of rows of `_medium` functions (small batches)"),
            llvm::cl::init(StageOptions().phases.gemmThreshold)),
        smallBatch(options, "small-batch",
                   llvm::cl::desc("maximum number of rows of `_small` functions (decode)"),
                   llvm::cl::init(StageOptions().phases.smallBatch)) {}

  void addTo(StageOptions &stage) const {
    if (exactRows.hasValue())
      stage.exactRows = exactRows;
    stage.phases = {gemmThreshold, smallBatch};
  }

  PipelineOption<ExactRows> exactRows;
  PipelineOption<int64_t> gemmThreshold, smallBatch;
};

} // namespace mica

#endif // MICA_PASSES_PIPELINES_PIPELINEOPTIONS_H
