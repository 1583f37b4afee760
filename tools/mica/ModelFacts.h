//===- ModelFacts.h - the properties of a model -----------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_MODELFACTS_H
#define MICA_TOOLS_MICA_MODELFACTS_H

#include "backends/cpu/driver/Compiler.h"

#include "llvm/Support/JSON.h"

#include <map>
#include <string>

namespace mica::tool {

/// Sizes are what the ops say: the model is its IR, not its config.json.
struct ModelFacts {
  std::string name, family, weights, kv;
  cpu::TargetDescription target; ///< that the kernels are for
  /// Tensors by the type of weights in a program: block formats, and floats.
  std::map<std::string, int64_t> blockFormats, floatTypes;
  std::map<std::string, std::string> rows; ///< types of the rows that multiply blocks, by role
  std::string promptRows;                  ///< those of prompts in the words of --rows
  std::string stored; ///< how a GGUF file stores most numbers; empty for others
  int64_t context = 0, vocab = 0, hidden = 0, layers = 0, heads = 0, kvHeads = 0, headDim = 0;
  int64_t tensors = 0, parameters = 0;
  uint64_t storedBytes = 0;     ///< of the weights in a program
  int64_t cachePerToken = 0;    ///< bytes, of one sequence
  int64_t statePerSequence = 0; ///< bytes, of states of fixed size
  struct Caches {
    int64_t layers = 0, perToken = 0; ///< bytes, as above
  };
  std::map<int64_t, Caches> caches; ///< by the window of their layers; 0: none
  struct Function {
    int64_t calls = 0; ///< how many layers are of this kind; 0 for an entry function
    std::map<std::string, int64_t> ops;
  };
  std::map<std::string, Function> functions; ///< at stage `model`
  std::map<std::string, std::map<std::string, int64_t>>
      kernels; ///< at stage `kernels`: function -> "linear generated" -> how many
  std::vector<PassRemark> remarks; ///< of the passes that lead there
};

/// Reads the facts and takes `module` from stage `model` to stage `kernels` meanwhile.
llvm::Expected<ModelFacts> readModelFacts(mlir::ModuleOp module,
                                          const cpu::CompileOptions &options);

llvm::json::Object toJson(const ModelFacts &facts);
std::string toText(const ModelFacts &facts);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_MODELFACTS_H
