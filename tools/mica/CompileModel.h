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
  bool isRequantized = false;       ///< blocks of the checkpoint were converted to another format
  bool hasTokenizer = false, hasChat = false; ///< chat: there is a template that can be run
};

/// Which messages a compilation prints to stderr.
enum class Messages { None, Default, Verbose };

/// Prints warnings and notes of passes over `input`, the model MODEL; those common to several
/// layers once. Tensors of a GGUF file are named as in the file.
void reportRemarks(llvm::StringRef model, const ModelInput &input,
                   llvm::ArrayRef<PassRemark> remarks);

/// Computes the importance of the columns of the model's weights.
struct FindImportance {
  std::function<llvm::Expected<cpu::ColumnImportance>(const ModelInput &input)> find;
  bool isMeasured = false; ///< on a text, by `--calibrate`; else it is read from a file
};

/// Compiles MODEL to a program at `output`, with a progress bar.
llvm::Expected<CompileResult> compileModel(const ModelArguments &arguments,
                                           cpu::CompileOptions options, llvm::StringRef output,
                                           Messages messages, FindImportance findImportance = {});

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_COMPILEMODEL_H
