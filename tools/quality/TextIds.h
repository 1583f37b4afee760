//===- TextIds.h - texts as token ids ---------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_QUALITY_TEXTIDS_H
#define MICA_TOOLS_QUALITY_TEXTIDS_H

#include "backends/runtime/text/ProgramTokenizer.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mica::tool {

/// Tokenizes a text file.
llvm::Expected<rt::Tokens> idsOfText(llvm::StringRef path, const rt::ProgramTokenizer &tokenizer);

/// Reads ids from a file, separated by spaces, newlines or commas.
llvm::Expected<rt::Tokens> idsInFile(llvm::StringRef path, int64_t vocab);

} // namespace mica::tool

#endif // MICA_TOOLS_QUALITY_TEXTIDS_H
