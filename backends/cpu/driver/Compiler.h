//===- Compiler.h - from a module to a program ------------------*- C++ -*-===//
//
// Runs the stages one after the other, times them, and writes the program.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_BACKENDS_CPU_DRIVER_COMPILER_H
#define MICA_BACKENDS_CPU_DRIVER_COMPILER_H

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
class TargetMachine;
} // namespace llvm

namespace mica::cpu {

/// How far a compilation has come.
struct CompileProgress {
  Stage stage;              ///< the one that is being reached
  bool isReached = false;   ///< and has been written
  uint64_t packedBytes = 0; ///< of weights, on the way to stage `exe`
  uint64_t bytesToPack = 0; ///< 0: not known yet
};

/// Watches a compilation, stage by stage.
class CompileObserver {
public:
  virtual ~CompileObserver();
  /// Before the passes that lead to `stage` run.
  virtual void onPipeline(Stage stage, mlir::PassManager &passes) = 0;
  /// At each stage from `model` to `llvm`. May change locations.
  virtual llvm::Error onModule(Stage stage, mlir::ModuleOp module) = 0;
  /// At stage `ll`. May remove debug information.
  virtual llvm::Error onCode(llvm::Module &code, llvm::TargetMachine &machine) = 0;
  /// At stage `obj`: the object, and the manifest, as far as it is known without weights.
  virtual llvm::Error onObject(llvm::StringRef object, llvm::StringRef manifest) = 0;
};

struct CompileOptions {
  TargetDescription target;
  /// Default: the checkpoint's own precision, f16 as bf16.
  std::optional<Precision> weights;
  /// Whether matrices that are stored in blocks keep their format.
  bool preserveBlocks = false;
  /// How rows of prompts multiply weights in blocks; default: as the module states.
  std::optional<PromptRows> promptRows;
  /// Default: bf16, and f32 where the weights are f32.
  std::optional<Precision> kv;
  /// Positions that a program reserves; default: the model's own length, at most 8192.
  std::optional<int64_t> maxSeq;
  /// What probes of the program show, where it has any (`mica-insert-probes`).
  std::optional<Probed> probes = {};
  /// What errors of quantized weights weigh; null: those of all columns alike.
  const ColumnImportance *importance = nullptr;
  /// The last stage to reach.
  Stage emit = Stage::Exe;
  /// Where not empty, a folder for the text of every stage.
  std::string dumpFolder;
  /// The launcher's file; needed for stage `exe`.
  std::string launcher;
  /// What to do where the program cannot be written, for errors.
  std::string outputHint = "choose another -o";
  /// The tokenizer's table; may be empty.
  llvm::ArrayRef<std::byte> tokenizer;
  /// What the program puts conversations into words with: a template and the special tokens that it
  /// names (abi/Manifest.h); may be empty.
  std::string chatTemplate;
  std::string toolTemplate; ///< Of conversations with tools; empty: the same.
  std::vector<std::pair<std::string, std::string>> specialTokens;
  /// Null: nobody watches.
  CompileObserver *observer = nullptr;
  /// Called as the work advances.
  std::function<void(const CompileProgress &)> progress;
};

struct StageReport {
  Stage stage;
  double seconds;
  uint64_t bytes; ///< of the stage's text, object or file
};

struct CompileReport {
  std::vector<StageReport> stages;
  uint64_t weightBytes = 0;
  unsigned packingThreads = 0; ///< 0: no weights were packed
  /// Positions that the program reserves, bytes of its caches for each, and for all of them, of
  /// which windows keep the last ones only: from stage `kernels` on.
  int64_t maxSeq = 0, cacheBytesPerToken = 0, cacheBytes = 0;
  /// The precision of weights without a block format and of caches.
  Precision weights = Precision::F32, kv = Precision::F32;
  /// How prompts multiply weights in blocks: from stage `kernels` on.
  PromptRows promptRows = PromptRows::Exact;
  /// Block formats of the checkpoint that are preserved: from stage `kernels` on.
  std::map<std::string, int64_t> preservedBlocks;
  /// How long texts may be that the scaling of rope was made for, where one says so.
  std::optional<int64_t> scaledFor;
  /// What passes could not do, such as preserving blocks, and why.
  std::vector<PassRemark> remarks;
};

/// A file that compiling writes, and the option that has named it.
struct OutputFile {
  std::string path;
  llvm::StringRef option;
};

/// All that `compile` would write.
std::vector<OutputFile> outputsOf(const CompileOptions &options, llvm::StringRef output);

/// Registers everything that compiling needs.
void registerCompilerDialects(mlir::DialectRegistry &registry);

/// Takes `module` from stage `model` to `options.emit` and writes the result to `output`: text for
/// the stages up to `asm`, an object, or the program. An empty `output` below stage `exe`: nothing
/// is written. `weights` may be null below stage `exe`.
/// Errors name the op, its place in the model and the hint; after one, nothing is at `output`
/// that was not there before.
llvm::Expected<CompileReport> compile(mlir::ModuleOp module, const WeightSource *weights,
                                      const CompileOptions &options, llvm::StringRef output);

/// The graph's stages, and those of this backend: `kernels`, where the module gets `target`,
/// `loops` and `llvm`.
StageTable stagesFor(const TargetDescription &target);

/// What the passes up to stage `kernels` are told, for a model whose matrices have the precision
/// `weights`.
StageOptions stageOptionsOf(const CompileOptions &options, Precision weights);

/// Chooses the precision of weights where none was asked for and the checkpoint is stored in
/// blocks, most of whose numbers take so many bits.
void chooseWeights(CompileOptions &options, double bits);

/// The precision of the checkpoint's matrices: f32 where any is f32, else bf16.
Precision checkpointPrecision(mlir::ModuleOp module);

/// Elements of all weights: at stage `model` what people call the model's parameters.
int64_t countParameters(mlir::ModuleOp module);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_DRIVER_COMPILER_H
