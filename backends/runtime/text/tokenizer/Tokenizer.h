// Encodes text to ids and decodes ids to text, with the table in a compiled program.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TOKENIZER_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TOKENIZER_H

#include "backends/runtime/support/Result.h"
#include "backends/runtime/text/base/ByteRanges.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// Immutable after loading: any number of threads may encode concurrently.
class Tokenizer {
public:
  /// Opens a table (tokenizer/TableFormat.h), which must outlive the tokenizer. For any bytes, the
  /// result is an error or a tokenizer that is safe to use. Tokens in the `templateLiterals` of a
  /// chat template are reserved: they are never produced from untrusted text, whether the
  /// vocabulary marks them as special or not.
  static Result<Tokenizer> load(std::span<const std::byte> table,
                                std::span<const std::string> templateLiterals = {});

  Tokenizer(Tokenizer &&) noexcept;
  Tokenizer &operator=(Tokenizer &&) noexcept;
  ~Tokenizer();

  /// The ids of `text`. Added tokens are recognized by their spelling, except special and reserved
  /// tokens with a byte in `untrusted`, which are ordinary text; other ids do not depend on
  /// `untrusted`. Invalid UTF-8 is read as U+FFFD, and is untrusted if any part of it is. With
  /// `addSpecial`, the ids that the model expects around a prompt (such as BOS) are added. If there
  /// are more than `maxIds`, the result is a beginning of them that has more than `maxIds`, and the
  /// rest of the text is not encoded. Error: a pattern of the tokenizer exceeds its limits.
  Result<std::vector<int32_t>> encode(std::string_view text, bool addSpecial,
                                      const ByteRanges &untrusted = {},
                                      size_t maxIds = SIZE_MAX) const;

  /// The number of ids, 0 .. size()-1; some may be unused.
  int32_t size() const;
  /// Whether decoding skips the id: special tokens, control pieces, ids outside the
  /// vocabulary.
  bool isSpecial(int32_t id) const;
  /// The id of an added token or piece with exactly this spelling.
  std::optional<int32_t> find(std::string_view spelling) const;

  /// Decodes ids incrementally. Only whole characters are returned; together they are the
  /// text of all ids.
  class Decoder {
  public:
    /// `continuation`: the ids continue a text, so the space that a SentencePiece model adds before
    /// a text is kept. `printSpecial`: special tokens are spelled out.
    explicit Decoder(const Tokenizer &tokenizer, bool continuation = false,
                     bool printSpecial = false);
    /// The text that `id` completes; an incomplete character is kept until its rest arrives.
    std::string push(int32_t id);
    /// Ends the text: an incomplete character becomes U+FFFD. The decoder can be used for another
    /// text afterwards.
    std::string finish();

    Decoder(Decoder &&) noexcept;
    Decoder &operator=(Decoder &&) noexcept;
    ~Decoder();

  private:
    friend class Tokenizer;
    struct State;
    std::unique_ptr<State> state;
  };

  /// The bytes that `id` adds to a text that it continues, which may be part of a character;
  /// special tokens are spelled out. Empty for ids outside the vocabulary.
  std::string bytesOf(int32_t id) const;
  /// The text of `ids` without special tokens.
  std::string decode(std::span<const int32_t> ids) const;

private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);
  std::unique_ptr<const Parts> parts;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TOKENIZER_H
