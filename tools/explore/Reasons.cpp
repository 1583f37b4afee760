//===- Reasons.cpp - what patterns say that they do -----------------------===//

#include "tools/explore/Reasons.h"

using namespace llvm;

namespace mica::explore {

struct Reason {
  StringLiteral pattern, text;
};

/// Made by reasons.py of the sources.
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
