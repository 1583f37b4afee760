// Finds added tokens, special ones included, in text.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_ADDEDTOKENS_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_ADDEDTOKENS_H

#include "backends/runtime/support/Result.h"
#include "backends/runtime/text/base/ByteRanges.h"
#include "backends/runtime/text/base/Regex.h"
#include "backends/runtime/text/tokenizer/Lookup.h"
#include "backends/runtime/text/tokenizer/Normalizer.h"
#include "backends/runtime/text/tokenizer/Table.h"

#include <deque>
#include <optional>
#include <string>

namespace mica::rt::tokenizer {

class AddedTokens {
public:
  static Result<AddedTokens> create(const Table &table, const Normalizer &normalizer);

  struct Part {
    size_t begin, end; // in the text
    int32_t id;        // -1: ordinary text
  };
  /// Splits `text` at the tokens matched before (`normalized` false) or after the normalizer:
  /// leftmost, then longest. Special and reserved tokens are not matched in `untrusted` ranges.
  std::vector<Part> split(std::string_view text, bool normalized,
                          const ByteRanges &untrusted) const;
  /// Whether special or reserved tokens are matched after the normalizer.
  bool normalizedGuarded() const { return !guarded[1].empty(); }

private:
  bool accept(std::string_view text, const AddedToken &token, size_t from, size_t &begin,
              size_t &end) const;
  PrefixSearch::Match find(std::string_view text, size_t at, bool normalized,
                           const ByteRanges &untrusted) const;
  static bool is(const std::optional<Regex> &kind, std::string_view character);
  bool wordBefore(std::string_view text, size_t at) const;

  std::vector<AddedToken> tokens;
  std::deque<std::string> normalizedContents; // stable addresses for the search
  PrefixSearch searches[2];                   // [normalized]
  PrefixSearch guarded[2], plain[2];          // of these, the special and reserved ones; the others
  std::optional<Regex> wordCharacter, whiteSpace;
};

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_ADDEDTOKENS_H
