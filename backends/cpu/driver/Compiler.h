//===- Compiler.h - from a module to a program ------------------*- C++ -*-===//
//
// Runs the stages one after the other, times them, and writes the program.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_BACKENDS_CPU_DRIVER_COMPILER_H
#define MICA_BACKENDS_CPU_DRIVER_COMPILER_H

#include "backends/cpu/driver/ObjectCache.h"
#include "backends/cpu/pack/CalibratedSource.h"
#include "backends/cpu/target/TargetDescription.h"
#include "ir/Mica/Diagnostics.h"
#include "passes/pipelines/Stages.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class Module;
class PassInstrumentationCallbacks;
class TargetMachine;
} // namespace llvm

namespace mica::cpu {

/// The progress of a compilation.
struct CompileProgress {
  Stage stage;              ///< the current stage
  bool isReached = false;   ///< whether it has been written
  uint64_t packedBytes = 0; ///< bytes of weights packed so far, before stage `exe`
  uint64_t bytesToPack = 0; ///< 0: unknown
};

/// An observer of the stages of a compilation.
class CompileObserver {
public:
  virtual ~CompileObserver();
  /// Called before the passes to `stage` run.
  virtual void onPipeline(Stage stage, mlir::PassManager &passes) = 0;
  /// Called at each stage from `model` to `llvm`. May change locations.
  virtual llvm::Error onModule(Stage stage, mlir::ModuleOp module) = 0;
  /// Called before LLVM's passes run on `code`, which produce stage `ll`.
  virtual void onOptimizer(llvm::Module &code, llvm::PassInstrumentationCallbacks &callbacks) = 0;
  /// Called at stage `ll`. May remove debug information.
  virtual llvm::Error onCode(llvm::Module &code, llvm::TargetMachine &machine) = 0;
  /// Called at stage `obj` with the object and the part of the manifest that does not depend on
  /// weights.
  virtual llvm::Error onObject(llvm::StringRef object, llvm::StringRef manifest) = 0;
};

struct CompileOptions {
  TargetDescription target;
  /// Default: the checkpoint's own precision, f16 as bf16.
  std::optional<Precision> weights;
  /// Whether matrices keep the block formats in which they are stored.
  bool preserveBlocks = false;
  /// The activations multiplied by block-quantized weights in prefill; default: set by the module.
  std::optional<PromptRows> promptRows;
  /// Default: bf16, or f32 if the weights are f32.
  std::optional<Precision> kv;
  /// The number of processes that run the program together.
  int64_t ranks = 1;
  /// Positions that a program reserves; default: the model's own length, at most 8192.
  std::optional<int64_t> maxSeq;
  /// What the program's probes record, if it has any (`mica-insert-probes`).
  std::optional<Probed> probes = {};
  /// The weights of quantization errors by column; null: all columns have the same weight.
  const ColumnImportance *importance = nullptr;
  /// The last stage to reach.
  Stage emit = Stage::Exe;
  /// If not empty, a folder for the text of every stage.
  std::string dumpFolder;
  /// The launcher's file; needed for stage `exe`.
  std::string launcher;
  /// The hint of errors if the program cannot be written.
  std::string outputHint = "choose another -o";
  /// The tokenizer's table; may be empty.
  llvm::ArrayRef<std::byte> tokenizer;
  /// The chat template and the special tokens that it refers to (abi/Manifest.h); may be empty.
  std::string chatTemplate;
  std::string toolTemplate; ///< for conversations with tools; empty: same as chatTemplate
  std::vector<std::pair<std::string, std::string>> specialTokens;
  /// Optional; not used if stages `ll` and `asm` are observed or written.
  std::optional<ObjectCache> objects = {};
  /// Optional; receives the stages of the compilation.
  CompileObserver *observer = nullptr;
  /// Called with the progress of the compilation.
  std::function<void(const CompileProgress &)> progress;
};

struct StageReport {
  Stage stage;
  double seconds;
  uint64_t bytes; ///< of the stage's text, object or file
};

struct CompileReport {
  std::vector<StageReport> stages;
  bool isCodeCached = false;   ///< whether the object is from the cache
  uint64_t weightBytes = 0;    ///< of all ranks
  unsigned packingThreads = 0; ///< 0: no weights were packed
  /// The program's maximum sequence length, and the bytes of its caches per position and for a
  /// sequence of that length, of which caches with a window store only a part: from stage `kernels`
  /// on.
  int64_t maxSeq = 0, cacheBytesPerToken = 0, cacheBytes = 0;
  /// Bytes of a sequence's states of fixed size, and of a checkpoint of them: from stage `kernels`
  /// on.
  int64_t stateBytes = 0, checkpointBytes = 0;
  /// The precision of weights without a block format and of caches.
  Precision weights = Precision::F32, kv = Precision::F32;
  /// The activations multiplied by block-quantized weights in prefill: from stage `kernels` on.
  PromptRows promptRows = PromptRows::Exact;
  /// Block formats of the checkpoint that are preserved: from stage `kernels` on.
  std::map<std::string, int64_t> preservedBlocks;
  /// The sequence length for which the rope scaling was made, if known.
  std::optional<int64_t> scaledFor;
  /// Remarks of passes about missed transformations, such as blocks that are not preserved.
  std::vector<PassRemark> remarks;
};

/// A file that a compilation writes, and the option that names it.
struct OutputFile {
  std::string path;
  llvm::StringRef option;
};

/// All files that `compile` would write.
std::vector<OutputFile> outputsOf(const CompileOptions &options, llvm::StringRef output);

/// Returns an error if `output` cannot be written; called before the work is done.
llvm::Error checkOutput(const CompileOptions &options, llvm::StringRef output);

/// Registers all required dialects, interfaces and translations.
void registerCompilerDialects(mlir::DialectRegistry &registry);

/// Lowers `module` from stage `model` to `options.emit` and writes the result to `output`: text for
/// the stages up to `asm`, an object, or the program. With an empty `output`, allowed before stage
/// `exe`, nothing is written. `weights` may be null before stage `exe`.
/// Errors name the op, its location in the model and a hint; `output` is unchanged after an error.
llvm::Expected<CompileReport> compile(mlir::ModuleOp module, const WeightSource *weights,
                                      const CompileOptions &options, llvm::StringRef output);

/// The stages before `kernels`, and those of this backend: `kernels`, at which the module gets
/// `target`, `loops` and `llvm`.
StageTable stagesFor(const TargetDescription &target);

/// The options of the passes up to stage `kernels`, for a model whose matrices have the precision
/// `weights`.
StageOptions stageOptionsOf(const CompileOptions &options, Precision weights);

/// Chooses the precision of weights if none was requested and the checkpoint is block-quantized,
/// by the number of bits of most of its weights.
void chooseWeights(CompileOptions &options, double bits);

/// The precision of the checkpoint's matrices: f32 if any is f32, else bf16.
Precision checkpointPrecision(mlir::ModuleOp module);

/// The number of elements of all weights; at stage `model` this is the model's number of
/// parameters.
int64_t countParameters(mlir::ModuleOp module);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_DRIVER_COMPILER_H
