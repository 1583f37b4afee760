//===- Reasons.cpp - descriptions of patterns -----------------------------===//

#include "tools/explore/Reasons.h"

using namespace llvm;

namespace mica::explore {

struct Reason {
  StringLiteral pattern, text;
};

/// Generated from the sources by reasons.py.
static constexpr Reason kReasons[] = {
#include "Reasons.inc"
};

StringRef reasonOf(StringRef pattern) {
  for (const Reason &reason : kReasons)
    if (reason.pattern == pattern.split('<').first)
      return reason.text;
  return {};
}

} // namespace mica::explore
