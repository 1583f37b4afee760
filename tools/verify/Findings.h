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

/// The program's values and the interpreter's at one probe.
struct Comparison {
  std::string name;
  int64_t layer; ///< -1: none
  size_t order;
  size_t experts;   ///< of a row, where it is a choice of these; 0: it is numbers
  rt::RowRole role; ///< of the rows that are furthest off
  Distance own;     ///< from the interpreter that rounds alike and computes from the program's rows
  Distance fromF32; ///< from the interpreter in f32, with all ops before

  Distance distance(llvm::ArrayRef<float> values, llvm::ArrayRef<float> reference) const {
    return experts > 0 ? Distance::ofChoices(values, reference, experts)
                       : Distance(values, reference);
  }
};

/// What `mica verify` says, of all parts that were verified the worst.
struct Findings {
  std::string model; ///< as it was named
  rt::Manifest manifest;
  size_t positions = 0;
  Bounds bounds = kBounds[0];
  std::vector<Comparison> comparisons; ///< in the order of the model
  std::vector<std::string> notReached;
  Distance ofLogits;
  size_t nearTies = 0, nearTiesOfModel = 0; ///< of rows that gates chose for
  Quality quality;

  /// The first op that is further off than the precision explains; null: none.
  const Comparison *firstFault() const;
  /// Which op of which layer.
  std::string placeOf(const Comparison &comparison) const;
  bool passed() const;
  llvm::json::Object toJson() const;
  std::string toText() const;

private:
  double worstOp() const;
  bool meetsSameTop(double bound) const;
  bool logitsPassed() const;
  std::string verdict() const;
};

} // namespace mica::tool

#endif // MICA_TOOLS_VERIFY_FINDINGS_H
