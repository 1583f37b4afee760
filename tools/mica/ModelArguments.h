//===- ModelArguments.h - MODEL, and how it is compiled ---------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_MODELARGUMENTS_H
#define MICA_TOOLS_MICA_MODELARGUMENTS_H

#include "backends/cpu/driver/Compiler.h"
#include "frontend/import/WeightPlan.h"

#include <string>

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
  bool mtp = false;        ///< keep the multi-token prediction head
  std::string target = "native";
  const CLI::App *command = nullptr; ///< the command of these options

  /// Adds the options to `command`; `what` describes MODEL in --help.
  void addTo(CLI::App &command, const std::string &what);
  /// The first option that was given with at least `values` values; empty if there is none.
  std::string givenOption(size_t values = 1) const;
  /// How the model is read.
  MtpHead mtpHead() const { return mtp ? MtpHead::Kept : MtpHead::LeftOut; }
  /// The options for the compiler library; errors name the option.
  llvm::Expected<cpu::CompileOptions> resolve() const;

private:
  void addPrecision(CLI::App &app);
};

/// The compiler's options for a program, with the launcher of this installation.
llvm::Expected<cpu::CompileOptions> programOptions(const ModelArguments &arguments,
                                                   const char *argv0);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_MODELARGUMENTS_H
