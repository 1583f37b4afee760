//===- PipelineOptions.h - what pipelines of mica-opt can be told --*- C++ -*-===//

#ifndef MICA_PASSES_PIPELINES_PIPELINEOPTIONS_H
#define MICA_PASSES_PIPELINES_PIPELINEOPTIONS_H

#include "passes/pipelines/Stages.h"

#include "mlir/Pass/PassOptions.h"

namespace mica {

/// The options of named pipelines as far as StageOptions has them; `Options` is the whole.
template <typename Options> struct StagePipelineOptions : mlir::PassPipelineOptions<Options> {
  template <typename T> using Option = mlir::detail::PassOptions::Option<T>;
  StageOptions defaults;

  Option<Precision> weights{*this, "weights", llvm::cl::desc("precision of matrices"),
                            llvm::cl::init(defaults.weights), precisionValues()};
  Option<Precision> kv{*this, "kv", llvm::cl::desc("precision of caches"),
                       llvm::cl::init(defaults.kv), precisionValues()};
  Option<bool> keepBlocks{*this, "keep-blocks",
                          llvm::cl::desc("weights keep blocks of integers that they are stored in"),
                          llvm::cl::init(defaults.keepBlocks)};
  Option<PromptRows> promptRows{*this, "prompt-rows",
                                llvm::cl::desc("type of rows of prompts that multiply blocks"),
                                llvm::cl::init(defaults.promptRows), promptRowsValues()};
  Option<int64_t> crossing{*this, "crossing", llvm::cl::desc("most rows of a `_several` function"),
                           llvm::cl::init(defaults.phases.crossing)};
  Option<int64_t> fewRows{*this, "few-rows", llvm::cl::desc("most rows of a `_few` function"),
                          llvm::cl::init(defaults.phases.few)};

  StageOptions get() const {
    StageOptions options;
    options.weights = weights;
    options.kv = kv;
    options.keepBlocks = keepBlocks;
    options.promptRows = promptRows;
    options.phases = {crossing, fewRows};
    return options;
  }
};

/// Those of pipelines that know no processor.
struct GraphPipelineOptions : StagePipelineOptions<GraphPipelineOptions> {};

} // namespace mica

#endif // MICA_PASSES_PIPELINES_PIPELINEOPTIONS_H
