//===- Candidate.h - a program under test -----------------------*- C++ -*-===//
#ifndef MICA_TOOLS_QUALITY_CANDIDATE_H
#define MICA_TOOLS_QUALITY_CANDIDATE_H

#include "backends/runtime/engine/Model.h"
#include "backends/runtime/text/ProgramTokenizer.h"
#include "frontend/support/InputError.h"

namespace mica::tool {

/// A program and its manifest.
struct Candidate {
  std::string path;
  rt::Manifest manifest;
  std::unique_ptr<rt::ProgramTokenizer> text; ///< null without tokenizer
  uint64_t weightBytes = 0;

  static llvm::Expected<Candidate> open(llvm::StringRef path);
  llvm::Error error(const llvm::Twine &what, const llvm::Twine &hint) const {
    return inputError(path, what, hint);
  }
  /// An error of the runtime about the program, with a hint.
  llvm::Error error(const rt::Error &told) const {
    return llvm::createStringError(llvm::Twine(path) + ": " + told.message);
  }
  /// Bits per parameter in the program; 0 if the number of parameters is unknown.
  double bits() const {
    return manifest.parameters == 0
               ? 0
               : 8.0 * static_cast<double>(weightBytes) / static_cast<double>(manifest.parameters);
  }
};

} // namespace mica::tool

#endif // MICA_TOOLS_QUALITY_CANDIDATE_H
