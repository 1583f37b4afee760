//===- Candidate.h - a program that is compared with a reference -*- C++ -*-===//
#ifndef MICA_TOOLS_QUALITY_CANDIDATE_H
#define MICA_TOOLS_QUALITY_CANDIDATE_H

#include "backends/runtime/engine/Model.h"
#include "backends/runtime/text/ProgramTokenizer.h"
#include "frontend/support/InputError.h"

namespace mica::tool {

/// A program's description of itself.
struct Candidate {
  std::string path;
  rt::Manifest manifest;
  std::unique_ptr<rt::ProgramTokenizer> text; ///< null without tokenizer
  uint64_t weightBytes = 0;

  static llvm::Expected<Candidate> open(llvm::StringRef path);
  llvm::Error error(const llvm::Twine &what, const llvm::Twine &hint) const {
    return inputError(path, what, hint);
  }
  /// The runtime's error for the program, with its hint.
  llvm::Error error(const rt::Error &told) const {
    return llvm::createStringError(llvm::Twine(path) + ": " + told.message);
  }
  /// Bits that a parameter takes in the program; 0 where it does not say how many it has.
  double bits() const {
    return manifest.parameters == 0
               ? 0
               : 8.0 * static_cast<double>(weightBytes) / static_cast<double>(manifest.parameters);
  }
};

} // namespace mica::tool

#endif // MICA_TOOLS_QUALITY_CANDIDATE_H
