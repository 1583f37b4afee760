//===- LineDiff.h - line diffs of two texts ---------------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_LINEDIFF_H
#define MICA_TOOLS_EXPLORE_LINEDIFF_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace mica::explore {

/// A run of lines that differ, with context.
struct Hunk {
  size_t beginA, beginB;          ///< its first line in each text, from 1
  size_t countA = 0, countB = 0;  ///< its number of lines in each text
  std::vector<std::string> lines; ///< " both", "-only in a", "+only in b"
};

struct LineDiff {
  size_t onlyInA = 0, onlyInB = 0; ///< lines
  std::vector<Hunk> hunks;
};

/// Compares texts of a stage line by line, ignoring the numbers of values (`%12`), aliases
/// (`#map3`) and labels (`.LBB0_7`), which change with every op added before them. Each hunk has up
/// to `context` equal lines before and after its changes.
LineDiff diffLines(llvm::StringRef a, llvm::StringRef b, size_t context = 3);

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_LINEDIFF_H
