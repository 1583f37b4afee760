//===- LineDiff.h - the lines in which two texts differ ---------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_LINEDIFF_H
#define MICA_TOOLS_EXPLORE_LINEDIFF_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace mica::explore {

/// A run of lines that differ, with those around it.
struct Hunk {
  size_t beginA, beginB;          ///< its first line in either text, counted from 1
  size_t countA = 0, countB = 0;  ///< its lines in either text
  std::vector<std::string> lines; ///< " both", "-only in a", "+only in b"
};

struct LineDiff {
  size_t onlyInA = 0, onlyInB = 0; ///< lines
  std::vector<Hunk> hunks;
};

/// Compares texts of a stage line by line. The numbers of values (`%12`), of aliases (`#map3`) and
/// of labels (`.LBB0_7`) are ignored: one more op changes those of all that follow. Each hunk has
/// up to `context` lines that are the same before and after its changes.
LineDiff diffLines(llvm::StringRef a, llvm::StringRef b, size_t context = 3);

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_LINEDIFF_H
