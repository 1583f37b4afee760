//===- GgufPreTokenizers.h - the names of tokenizer.ggml.pre ----*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_TOKENIZER_GGUFPRETOKENIZERS_H
#define MICA_FRONTEND_TEXT_TOKENIZER_GGUFPRETOKENIZERS_H

#include "frontend/text/tokenizer/TokenizerTable.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mica {

/// A pre-tokenizer that GGUF files only name, with the contents of the tokenizer.json for which the
/// name was introduced.
struct GgufPreTokenizer {
  llvm::StringLiteral name;
  /// Patterns whose matches become words, applied in order, as in tokenizer.json.
  llvm::ArrayRef<llvm::StringLiteral> patterns;
  bool composes = false;     ///< text is normalized to NFC
  bool takesPieces = false;  ///< a word that is a piece is not merged
  bool beginsPrompt = false; ///< the BOS token is added unless the file specifies otherwise
};

/// The pre-tokenizer with this name; null: unknown.
const GgufPreTokenizer *ggufPreTokenizerNamed(llvm::StringRef name);

/// All names, for messages.
std::string ggufPreTokenizerNames();

/// Adds its steps and flags to `table`.
void apply(const GgufPreTokenizer &pre, TokenizerTable &table);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_TOKENIZER_GGUFPRETOKENIZERS_H
