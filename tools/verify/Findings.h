//===- Findings.h - a program compared with the interpreter -----*- C++ -*-===//
#ifndef MICA_TOOLS_VERIFY_FINDINGS_H
#define MICA_TOOLS_VERIFY_FINDINGS_H

#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/abi/RowRole.h"
#include "tools/quality/Quality.h"
#include "tools/verify/Bounds.h"
#include "tools/verify/ProbeRecords.h"

#include "llvm/Support/JSON.h"

namespace mica::tool {

/// The values of program and interpreter at a probe.
struct Comparison {
  std::string name;
  int64_t layer; ///< -1: none
  size_t order;
  size_t experts;   ///< if a row is a choice of experts, their number; 0: numbers
  rt::RowRole role; ///< of the rows with the largest difference
  Distance own;     ///< from the interpreter that rounds like the program and uses its rows
  Distance fromF32; ///< from the f32 interpreter, including the error of all ops before

  Distance distance(llvm::ArrayRef<float> values, llvm::ArrayRef<float> reference) const {
    return experts > 0 ? Distance::ofChoices(values, reference, experts)
                       : Distance(values, reference);
  }
};

/// The result of `mica verify`: the worst of all verified parts.
struct Findings {
  std::string model; ///< as named by the user
  rt::Manifest manifest;
  size_t positions = 0;
  Bounds bounds = kBounds[0];
  std::vector<Comparison> comparisons; ///< in the order of the model
  std::vector<std::string> notReached;
  Distance ofLogits;
  size_t nearTies = 0, nearTiesOfModel = 0; ///< of rows in gates
  Quality quality;

  /// The first op whose error exceeds the bound; null if there is none.
  const Comparison *firstFault() const;
  /// Describes the op and its layer.
  std::string locationOf(const Comparison &comparison) const;
  bool passed() const;
  llvm::json::Object toJson() const;
  std::string toText() const;

private:
  double worstOp() const;
  bool reachesSameTop(double bound) const;
  bool logitsPassed() const;
  std::string verdict() const;
};

} // namespace mica::tool

#endif // MICA_TOOLS_VERIFY_FINDINGS_H
