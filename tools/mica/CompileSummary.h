//===- CompileSummary.h - the last line of mica compile -------------------===//
#ifndef MICA_TOOLS_MICA_COMPILESUMMARY_H
#define MICA_TOOLS_MICA_COMPILESUMMARY_H

#include "passes/support/Precision.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mica::tool {

/// The result of compiling a model.
struct CompileSummary {
  std::string output;
  uint64_t bytes = 0;
  std::map<std::string, int64_t> preservedBlocks; ///< names of formats -> tensors
  Precision weights = Precision::F32, kv = Precision::F32;
  std::string source; ///< storage type of most of the checkpoint's weights: "Q4_1", or empty
  std::vector<std::string> rounded; ///< types of weights that became bf16: "F16"
  bool isConverted = false;         ///< `--weights` converted the checkpoint's blocks
  ActivationStatistics statistics = ActivationStatistics::None;
  bool hasInt8Rows = false; ///< in prefill
  bool hasTokenizer = false, hasChat = false;
  int64_t ranks = 1;
  std::vector<std::string> plugins; ///< for MPI, copied next to the program
  std::string foreignTarget;        ///< the target CPU, if not this machine

  /// "wrote smol (95.31 MiB, Q4_1 preserved); try ./smol chat",
  /// "wrote smol (95.31 MiB, Q4_1 preserved), with mica-mpi-mpich.so next to it; try mpirun -n 2
  /// --bind-to none ./smol chat".
  std::string toText() const;
};

/// `path` as a command of a shell.
std::string shellCommand(llvm::StringRef path);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_COMPILESUMMARY_H
