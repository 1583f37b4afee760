//===- OpComparison.h - comparison op by op ---------------------*- C++ -*-===//
#ifndef MICA_TOOLS_VERIFY_OPCOMPARISON_H
#define MICA_TOOLS_VERIFY_OPCOMPARISON_H

#include "tools/verify/Findings.h"
#include "tools/verify/ProgramRun.h"
#include "tools/verify/ReferenceModel.h"

#include <map>

namespace mica::tool {

/// Compares runs of a program with the interpreter. The findings are the worst of all runs.
class OpComparison {
public:
  /// `reference`: the path of the model that the interpreter runs, for errors.
  OpComparison(Findings &findings, std::string reference)
      : findings(findings), reference(std::move(reference)) {}

  /// Called with the share of the work that is done.
  using Progress = llvm::function_ref<void(double)>;

  /// Compares each op with the interpreter, which uses the program's results of earlier ops, so
  /// that only the error of the op itself is measured.
  llvm::Error compareOps(const ProgramRun &run, const ReferenceModel &alike, Progress progress);

  /// Compares with the f32 interpreter, which uses its own results, so that errors of ops and
  /// logits include those of all earlier ops. Call it after compareOps() for the same run.
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
