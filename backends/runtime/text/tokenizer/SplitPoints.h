// Where a text falls into words although no pre-tokenizer splits it.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_SPLITPOINTS_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_SPLITPOINTS_H

#include <string_view>

namespace mica::rt::tokenizer {

struct Table;

/// The tokenizers of sentencepiece's kind merge over a whole text, but in most vocabularies nothing
/// joins a character to the visible space after it, so that what is between is merged word by
/// word to the same ids, and short words are fast.
class SplitPoints {
public:
  explicit SplitPoints(const Table &table);

  /// Whether the table has any.
  bool any() const { return present; }

  /// Calls `visit` for each part of `text`.
  template <typename Visit> void forEach(std::string_view text, Visit visit) const {
    while (present && !text.empty()) {
      size_t splitPoint = find(text);
      visit(text.substr(0, splitPoint));
      text.remove_prefix(splitPoint);
    }
    if (!text.empty())
      visit(text);
  }

private:
  /// The first split point after the beginning of `text`, else its size.
  static size_t find(std::string_view text);
  bool present;
};

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_SPLITPOINTS_H
