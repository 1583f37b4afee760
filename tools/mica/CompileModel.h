//===- CompileModel.h - from MODEL to a program, with its messages --------===//
#ifndef MICA_TOOLS_MICA_COMPILEMODEL_H
#define MICA_TOOLS_MICA_COMPILEMODEL_H

#include "frontend/import/ModelInput.h"
#include "tools/mica/ModelArguments.h"

#include <functional>
#include <string>
#include <vector>

namespace mica::tool {

/// The result of a compilation, with the ignored tensors.
struct CompileResult {
  cpu::CompileReport report;
  std::vector<IgnoredTensor> ignored;
  std::string source;               ///< storage type of most of the checkpoint's matrices, if known
  std::vector<std::string> rounded; ///< types of the checkpoint's matrices that became bf16
  bool isConverted = false;         ///< `--weights` converted blocks of the checkpoint
  bool hasBlocks = false;           ///< the program has block-quantized weights
  ActivationStatistics statistics = ActivationStatistics::None;
  bool hasTokenizer = false, hasChat = false; ///< chat: there is a template that can be run
};

/// Which messages a compilation prints to stderr.
enum class Messages { None, Default, Verbose };

/// Prints warnings and notes of passes over `input`, the model MODEL; those common to several
/// layers once. Tensors of a GGUF file are named as in the file.
void reportRemarks(llvm::StringRef model, const ModelInput &input,
                   llvm::ArrayRef<PassRemark> remarks);

/// The importance of the columns of a model's weights, and the statistics it is from.
struct FoundImportance {
  cpu::ColumnImportance columns;
  ActivationStatistics statistics;
};

/// Computes the importance of the columns of the model's weights.
using FindImportance = std::function<llvm::Expected<FoundImportance>(const ModelInput &input)>;

/// Warns if `--weights` converts the blocks of the model, with the cost in precision. `arguments`
/// are those of `input`.
void warnAboutConversion(const ModelInput &input, const ModelArguments &arguments,
                         ActivationStatistics statistics = ActivationStatistics::None);

/// Warns if `--rows` is given for a program without block-quantized weights.
void warnAboutRows(const ModelArguments &arguments, bool hasBlocks);

/// Compiles MODEL to a program at `output`, with a progress bar.
llvm::Expected<CompileResult> compileModel(const ModelArguments &arguments,
                                           cpu::CompileOptions options, llvm::StringRef output,
                                           Messages messages, FindImportance findImportance = {});

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_COMPILEMODEL_H
