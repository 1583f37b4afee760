//===- ProgramRun.h - a program with probes reads a text --------*- C++ -*-===//
#ifndef MICA_TOOLS_VERIFY_PROGRAMRUN_H
#define MICA_TOOLS_VERIFY_PROGRAMRUN_H

#include "backends/runtime/abi/RowRole.h"
#include "tools/verify/ProbeRecords.h"

namespace mica::tool {

/// What a program computes of a text, and what its probes see.
struct ProgramRun {
  llvm::ArrayRef<int32_t> text;
  rt::RowRole role;          ///< of all rows
  std::vector<float> logits; ///< [text, vocab]
  ProbeRecords seen;
};

/// How a program is run.
struct RunSettings {
  std::string program, probes; ///< files; that of the probes is written
  size_t vocab;
  int64_t threads = 0; ///< 0: the program's own choice
};

/// Runs a program alone on `text`, whose rows all have this role.
llvm::Expected<ProgramRun> runProgram(const RunSettings &settings, llvm::ArrayRef<int32_t> text,
                                      rt::RowRole role);

} // namespace mica::tool

#endif // MICA_TOOLS_VERIFY_PROGRAMRUN_H
