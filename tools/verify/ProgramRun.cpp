//===- ProgramRun.cpp - a program with probes reads a text ----------------===//

#include "tools/verify/ProgramRun.h"

#include "tools/quality/ScoringProcess.h"

#include <array>

using namespace llvm;

namespace mica::tool {

using rt::RowRole;

/// The last calls of the program, after one with all other rows: a few rows, then one by one, so
/// that the code for many rows and that for few are both run.
constexpr std::array<size_t, 5> kLastCalls = {5, 1, 1, 1, 1};

Expected<ProgramRun> runProgram(const RunSettings &settings, ArrayRef<int32_t> text, RowRole role) {
  std::vector<std::string> options = {"--probes", settings.probes};
  if (settings.threads > 0)
    options.insert(options.end(), {"--threads", std::to_string(settings.threads)});
  if (role == RowRole::Decode)
    options.emplace_back("--as-decode");
  Expected<std::unique_ptr<ScoringProcess>> process =
      ScoringProcess::start(settings.program, std::move(options));
  if (!process)
    return process.takeError();
  ProgramRun run{text, role, std::vector<float>(text.size() * settings.vocab), {}};
  size_t last = 0;
  for (size_t rows : kLastCalls)
    last += rows;
  std::vector<size_t> calls;
  if (text.size() > last) {
    calls.push_back(text.size() - last);
    calls.insert(calls.end(), kLastCalls.begin(), kLastCalls.end());
  } else {
    calls.assign(text.size(), 1);
  }
  size_t at = 0;
  for (size_t rows : calls) {
    if (Error error = (*process)->ask(at, text.size(), 0, text.slice(at, rows)))
      return std::move(error);
    if (Error error = (*process)->read(
            MutableArrayRef(run.logits).slice(at * settings.vocab, rows * settings.vocab)))
      return std::move(error);
    at += rows;
  }
  // The file is complete when the process has ended.
  process->reset();
  if (Error error = run.seen.read(settings.probes))
    return std::move(error);
  return run;
}

} // namespace mica::tool
