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

/// The options that decide how MODEL is compiled, common to `compile`, `run`, `inspect` and
/// `verify`.
struct ModelArguments {
  std::string model;
  std::string weights, kv; ///< names of precisions, or empty
  std::string rows;        ///< "exact", "int8" or empty
  int64_t maxSeq = 0;      ///< 0: not given
  std::string target = "native";
  const CLI::App *command = nullptr; ///< whose options these are

  /// `what` describes MODEL in --help.
  void addTo(CLI::App &command, const std::string &what);
  /// The first of the options that was given; empty where none was.
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
  std::vector<std::string> programArguments; ///< handed on to the program
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
  std::vector<std::string> stages; ///< whose lines are compared
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
  std::vector<std::string> names; ///< of models on the hub and of compiled programs
  bool programs = false;          ///< all of these
};

struct ReferenceArguments {
  std::string folder; ///< empty: the option reference goes to stdout
};

/// Each prints its own errors and returns the exit status.
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

/// What `mica eval --json` prints.
llvm::Expected<llvm::json::Object> evaluate(const EvalArguments &arguments);

/// Compiles MODEL to an object, of which nothing but the record is kept.
llvm::Expected<explore::Record> recordModel(const ModelArguments &arguments);

/// Whether the file must be a compiled program, as it is no model.
bool isProgram(llvm::StringRef path);

/// What a program still knows: the manifest and the hash of its code.
llvm::Expected<explore::Record> recordProgram(llvm::StringRef path);

/// MODEL as a path: itself, if it exists or cannot be OWNER/NAME; else that model of the hub, which
/// is pulled, with a progress bar, if it is not there yet.
llvm::Expected<std::string> modelPath(const std::string &model);

/// What `arguments` ask for, of a program: the launcher is where this tool says.
llvm::Expected<cpu::CompileOptions> programOptions(const ModelArguments &arguments,
                                                   const char *argv0);

/// The result of a compilation, with the ignored tensors.
struct CompileResult {
  cpu::CompileReport report;
  std::vector<IgnoredTensor> ignored;
  std::string source;         ///< how the checkpoint's matrices are stored, where that is known
  bool isRequantized = false; ///< blocks of the checkpoint became another format
  bool isStoredInHalves = false;
  bool hasTokenizer = false, hasChat = false; ///< chat: a template that can be run
};

/// Which messages a compilation prints to stderr.
enum class Messages { None, Default, Verbose };

/// Prints warnings and notes of passes over `input`, the model MODEL; those that layers have in
/// common once. Tensors of a GGUF file have their names of the file.
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
