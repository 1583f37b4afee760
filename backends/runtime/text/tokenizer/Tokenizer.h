// Text to ids and back, from the table inside a compiled program.
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

/// Immutable after loading: any number of threads may encode at once.
class Tokenizer {
public:
  /// Opens a table (tokenizer/TableFormat.h), which must outlive the tokenizer. Whatever the bytes
  /// are, the result is an error or a tokenizer that is safe to use. Tokens that the
  /// `templateLiterals` of a chat template write are reserved: untrusted text does not become them,
  /// whether the vocabulary calls them special or not.
  static Result<Tokenizer> load(std::span<const std::byte> table,
                                std::span<const std::string> templateLiterals = {});

  Tokenizer(Tokenizer &&) noexcept;
  Tokenizer &operator=(Tokenizer &&) noexcept;
  ~Tokenizer();

  /// The ids of `text`, in which added tokens are recognized by their spelling, but for special and
  /// reserved ones of which a byte is in `untrusted`: they are text, and all other ids are what
  /// they are without such ranges. Invalid UTF-8 is read as U+FFFD, and is untrusted altogether
  /// where some of it is. With `addSpecial`, the ids that the model wants around a prompt (such as
  /// BOS) are added. Fails where a pattern of the tokenizer would take too long.
  Result<std::vector<int32_t>> encode(std::string_view text, bool addSpecial,
                                      const ByteRanges &untrusted = {}) const;

  /// The number of ids, 0 .. size()-1; some may stand for nothing.
  int32_t size() const;
  /// Whether decoding leaves the id out: special tokens, control pieces, ids outside the
  /// vocabulary.
  bool isSpecial(int32_t id) const;
  /// The id of an added token or piece with exactly this spelling.
  std::optional<int32_t> find(std::string_view spelling) const;

  /// Turns ids into text as they come. Everything returned is whole characters; joined, it is the
  /// text of all ids.
  class Decoder {
  public:
    /// `continuation`: the ids continue a text, so the space that a sentencepiece model puts before
    /// a text is kept. `printSpecial`: special tokens are spelled out.
    explicit Decoder(const Tokenizer &tokenizer, bool continuation = false,
                     bool printSpecial = false);
    /// The text that has become certain with `id`; an unfinished character waits for its rest.
    std::string push(int32_t id);
    /// The end: an unfinished character becomes U+FFFD. The decoder may be used for another text
    /// afterwards.
    std::string finish();

    Decoder(Decoder &&) noexcept;
    Decoder &operator=(Decoder &&) noexcept;
    ~Decoder();

  private:
    struct State;
    std::unique_ptr<State> state;
  };

  /// The text of `ids` without special tokens.
  std::string decode(std::span<const int32_t> ids) const;

private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);
  std::unique_ptr<const Parts> parts;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TOKENIZER_H
