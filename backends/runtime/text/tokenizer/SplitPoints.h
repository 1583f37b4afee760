// Splits a text into words that can be merged independently, without a pre-tokenizer.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_SPLITPOINTS_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_SPLITPOINTS_H

#include <string_view>

namespace mica::rt::tokenizer {

struct Table;

/// SentencePiece tokenizers merge across a whole text. In most vocabularies, however, no piece
/// joins a character and the visible space after it, so merging word by word yields the same ids,
/// and is faster.
class SplitPoints {
public:
  explicit SplitPoints(const Table &table);

  /// Whether the vocabulary allows any split.
  bool any() const { return present; }

  /// Calls `visit` for each part of `text` as long as it returns true. Returns its last result.
  template <typename Visit> bool forEach(std::string_view text, Visit visit) const {
    while (present && !text.empty()) {
      size_t splitPoint = find(text);
      if (!visit(text.substr(0, splitPoint)))
        return false;
      text.remove_prefix(splitPoint);
    }
    return text.empty() || visit(text);
  }

private:
  /// The first split point after the beginning of `text`, else its size.
  static size_t find(std::string_view text);
  bool present;
};

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_SPLITPOINTS_H
