//===- OpComparison.h - what a program has computed, op by op ---*- C++ -*-===//
#ifndef MICA_TOOLS_VERIFY_OPCOMPARISON_H
#define MICA_TOOLS_VERIFY_OPCOMPARISON_H

#include "tools/verify/Findings.h"
#include "tools/verify/ProgramRun.h"
#include "tools/verify/ReferenceModel.h"

#include <map>

namespace mica::tool {

/// Compares runs of a program with the interpreter. Of all runs, findings have the worst.
class OpComparison {
public:
  /// `reference`: the model that the interpreter runs, for errors.
  OpComparison(Findings &findings, std::string reference)
      : findings(findings), reference(std::move(reference)) {}

  /// Called with the share of the work that is done.
  using Progress = llvm::function_ref<void(double)>;

  /// Every op of the interpreter computes from what the program's ops before it have made: an op is
  /// off by what itself does.
  llvm::Error compareOps(const ProgramRun &run, const ReferenceModel &alike, Progress progress);

  /// The interpreter in f32, which computes from its own numbers: ops and logits are off by all
  /// that is before them. After compareOps() of the same run.
  llvm::Error compareWithF32(const ProgramRun &run, const ReferenceModel &exact, Progress progress);

  /// All comparisons, in the order of the model.
  std::vector<Comparison> comparisons() const;

private:
  llvm::Error otherShape(const std::string &name) const;

  Findings &findings;
  std::string reference;
  std::map<std::pair<std::string, size_t>, Comparison> found;
};

} // namespace mica::tool

#endif // MICA_TOOLS_VERIFY_OPCOMPARISON_H
