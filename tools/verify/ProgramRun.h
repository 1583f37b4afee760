//===- ProgramRun.h - a program with probes reads a text --------*- C++ -*-===//
#ifndef MICA_TOOLS_VERIFY_PROGRAMRUN_H
#define MICA_TOOLS_VERIFY_PROGRAMRUN_H

#include "backends/runtime/abi/RowRole.h"
#include "tools/verify/ProbeRecords.h"

namespace mica::tool {

/// The logits that a program computes for a text, and the rows recorded by its probes.
struct ProgramRun {
  llvm::ArrayRef<int32_t> text;
  rt::RowRole role;          ///< of all rows
  std::vector<float> logits; ///< [text, vocab]
  ProbeRecords seen;
};

/// Options for running a program.
struct RunSettings {
  std::string program, probes; ///< paths; the file of probes is written
  size_t vocab;
  int64_t threads = 0; ///< 0: the program's default
};

/// Runs a program on `text`, whose rows all have this role.
llvm::Expected<ProgramRun> runProgram(const RunSettings &settings, llvm::ArrayRef<int32_t> text,
                                      rt::RowRole role);

} // namespace mica::tool

#endif // MICA_TOOLS_VERIFY_PROGRAMRUN_H
