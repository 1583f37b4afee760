//===- ModelFacts.h - properties of a model ---------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_MODELFACTS_H
#define MICA_TOOLS_MICA_MODELFACTS_H

#include "backends/cpu/driver/Compiler.h"

#include "llvm/Support/JSON.h"

#include <map>
#include <string>
#include <vector>

namespace mica::tool {

/// Facts about a model. Sizes are computed from its IR, not from config.json.
struct ModelFacts {
  std::string name, family, weights, kv;
  cpu::TargetDescription target; ///< target of the kernels
  /// Tensors by the type of weights in a program: block formats, and floats.
  std::map<std::string, int64_t> blockFormats, floatTypes;
  std::map<std::string, std::string> rows; ///< activation types by role
  std::string promptRows;                  ///< activation type in prefill, as in --rows
  std::string stored;                      ///< most frequent type in a GGUF file; empty for others
  int64_t context = 0, vocab = 0, hidden = 0, layers = 0, heads = 0, kvHeads = 0, headDim = 0;
  int64_t tensors = 0, parameters = 0;
  uint64_t storedBytes = 0;     ///< weights in a program
  int64_t cachePerToken = 0;    ///< bytes per sequence
  int64_t statePerSequence = 0; ///< bytes of states of fixed size
  struct Caches {
    int64_t layers = 0, perToken = 0; ///< bytes
  };
  std::map<int64_t, Caches> caches; ///< by the window of their layers; 0: none
  /// The different sizes of attention, of recurrences and of convolutions, in words.
  std::vector<std::string> attention, recurrences, convolutions;
  struct Function {
    int64_t calls = 0; ///< number of layers of this type; 0 for an entry function
    std::map<std::string, int64_t> ops;
  };
  std::map<std::string, Function> functions; ///< at stage `model`
  std::map<std::string, std::map<std::string, int64_t>>
      kernels;                     ///< at stage `kernels`: function -> "linear generated" -> count
  std::vector<PassRemark> remarks; ///< of the passes up to stage `kernels`
};

/// Reads the facts and lowers `module` from stage `model` to stage `kernels`.
llvm::Expected<ModelFacts> readModelFacts(mlir::ModuleOp module,
                                          const cpu::CompileOptions &options);

/// The sizes of a model at stage `model`, by name: `layers`, `hidden`, `heads`, `kv_heads`,
/// `head_dim`, `tensors`; without those that it does not have.
std::map<std::string, int64_t> readModelSizes(mlir::ModuleOp module);

llvm::json::Object toJson(const ModelFacts &facts);
std::string toText(const ModelFacts &facts);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_MODELFACTS_H
