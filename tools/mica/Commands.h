//===- Commands.h - the commands of mica ------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_COMMANDS_H
#define MICA_TOOLS_MICA_COMMANDS_H

#include "backends/cpu/driver/Compiler.h"
#include "frontend/import/ModelInput.h"
#include "tools/explore/Record.h"

#include "llvm/Support/JSON.h"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace mica::tool {

/// The heading of options that choose formats, in --help.
inline constexpr const char *kPrecisionGroup = "Precision";

/// The options that determine how MODEL is compiled, common to `compile`, `run`, `inspect` and
/// `verify`.
struct ModelArguments {
  std::string model;
  std::string weights, kv; ///< names of precisions, or empty
  std::string rows;        ///< "exact", "int8" or empty
  int64_t maxSeq = 0;      ///< 0: not given
  std::string target = "native";
  const CLI::App *command = nullptr; ///< the command of these options

  /// Adds the options to `command`; `what` describes MODEL in --help.
  void addTo(CLI::App &command, const std::string &what);
  /// The first option that was given; empty if there is none.
  std::string givenOption() const;
  /// The options for the compiler library; errors name the option.
  llvm::Expected<cpu::CompileOptions> resolve() const;

private:
  void addPrecision(CLI::App &app);
};

struct CompileArguments {
  ModelArguments model;
  std::string output, emit = "exe", dumpFolder;
  std::string calibrate, imatrix; ///< files, or empty
  bool json = false, verbose = false;
};

struct RunArguments {
  ModelArguments model;
  std::vector<std::string> programArguments; ///< passed on to the program
};

struct InspectArguments {
  ModelArguments model; ///< or a program, in `model.model`
  bool json = false;
};

struct ExploreArguments {
  ModelArguments model;
  std::string output, profile; ///< files, or empty
  bool open = false;
};

struct DiffArguments {
  ModelArguments a, b;             ///< or programs
  std::string text;                ///< a file, or empty
  std::vector<std::string> stages; ///< stages whose lines are compared
  bool bench = false, json = false;
};

struct EvalArguments {
  std::string program, text, tokensFile, reference;
  int64_t context = 0, windows = 0; ///< 0: not given
  int64_t prefillChunk = 0, threads = 0;
  bool asDecode = false, json = false;
};

struct VerifyArguments {
  ModelArguments model;
  std::string text, against;
  int64_t positions = 0, threads = 0; ///< 0: not given
  bool json = false;
};

struct PullArguments {
  std::string model; ///< OWNER/NAME[:SELECTION]
};

struct ListArguments {
  bool json = false;
};

struct RemoveArguments {
  std::vector<std::string> names; ///< models on the hub and compiled programs
  bool programs = false;          ///< all compiled programs
};

struct ReferenceArguments {
  std::string folder; ///< empty: print the option reference to stdout
};

/// Each function prints its errors and returns the exit status.
int runCompile(CompileArguments arguments, const char *argv0);
int runRun(const RunArguments &arguments, const char *argv0);
int runInspect(InspectArguments arguments);
int runExplore(ExploreArguments arguments);
int runDiff(DiffArguments arguments);
int runEval(const EvalArguments &arguments);
int runVerify(VerifyArguments arguments, const char *argv0);
int runPull(const PullArguments &arguments);
int runList(const ListArguments &arguments);
int runRemove(const RemoveArguments &arguments);
int runCompletion(const std::string &shell);
int runReference(const ReferenceArguments &arguments);

/// Computes the output of `mica eval --json`.
llvm::Expected<llvm::json::Object> evaluate(const EvalArguments &arguments);

/// Compiles MODEL to an object, and returns only the record.
llvm::Expected<explore::Record> recordModel(const ModelArguments &arguments);

/// Whether the file is treated as a compiled program because it is not a model.
bool isProgram(llvm::StringRef path);

/// The record of a program: its manifest and the hash of its code.
llvm::Expected<explore::Record> recordProgram(llvm::StringRef path);

/// MODEL as a path: itself, if it exists or cannot be OWNER/NAME; otherwise the path of that model
/// of the hub, which is pulled with a progress bar if necessary.
llvm::Expected<std::string> modelPath(const std::string &model);

/// The compiler's options for a program, with the launcher of this installation.
llvm::Expected<cpu::CompileOptions> programOptions(const ModelArguments &arguments,
                                                   const char *argv0);

/// The result of a compilation, with the ignored tensors.
struct CompileResult {
  cpu::CompileReport report;
  std::vector<IgnoredTensor> ignored;
  std::string source;         ///< storage type of the checkpoint's matrices, if known
  bool isRequantized = false; ///< blocks of the checkpoint were converted to another format
  bool isStoredInHalves = false;
  bool hasTokenizer = false, hasChat = false; ///< chat: there is a template that can be run
};

/// Which messages a compilation prints to stderr.
enum class Messages { None, Default, Verbose };

/// Prints warnings and notes of passes over `input`, the model MODEL; those common to several
/// layers once. Tensors of a GGUF file are named as in the file.
void reportRemarks(llvm::StringRef model, const ModelInput &input,
                   llvm::ArrayRef<PassRemark> remarks);

/// Computes the importance of the columns of the model's weights.
using FindImportance =
    std::function<llvm::Expected<cpu::ColumnImportance>(const ModelInput &input)>;

/// Compiles MODEL to a program at `output`, with a progress bar.
llvm::Expected<CompileResult> compileModel(const ModelArguments &arguments,
                                           cpu::CompileOptions options, llvm::StringRef output,
                                           Messages messages, FindImportance findImportance = {});

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_COMMANDS_H
