// The program's tokenizer, if it has one.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_PROGRAMTOKENIZER_H
#define MICA_BACKENDS_RUNTIME_TEXT_PROGRAMTOKENIZER_H

#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/abi/Tokens.h"
#include "backends/runtime/program/ProgramFile.h"
#include "backends/runtime/text/tokenizer/Tokenizer.h"

#include <memory>
#include <string_view>

namespace mica::rt {

/// The error of a program without a tokenizer for text input, up to its hint.
inline constexpr const char *noTokenizer =
    "the program has no tokenizer; put the tokenizer's files into the model's folder and compile "
    "it again, or pass ids ";

/// A tokenizer together with the table that it reads.
class ProgramTokenizer {
public:
  /// Null if the program has no tokenizer. `manifest` is the program's.
  static Result<std::unique_ptr<ProgramTokenizer>> load(const program::ProgramFile &file,
                                                        const Manifest &manifest);
  /// The same for a table that has been read.
  static Result<std::unique_ptr<ProgramTokenizer>> fromTable(std::vector<std::byte> table,
                                                             const Manifest &manifest);

  /// The ids of a prompt, including the special tokens that the model expects around it. `maxIds`:
  /// see Tokenizer::encode.
  Result<Tokens> encode(std::string_view text, size_t maxIds = SIZE_MAX) const {
    return tokenizer.encode(text, true, {}, maxIds);
  }
  /// The ids of a text: with `addSpecial`, as those of a prompt; with `parseSpecial`, special
  /// tokens are recognized by their spelling, otherwise they are ordinary text.
  Result<Tokens> encode(std::string_view text, bool addSpecial, bool parseSpecial) const;
  /// The ids of a text in which special tokens are spelled out, as by chat templates; in
  /// `untrusted` ranges they are ordinary text. `maxIds`: see Tokenizer::encode.
  Result<Tokens> encodeWithSpecialTokens(std::string_view text, const ByteRanges &untrusted = {},
                                         size_t maxIds = SIZE_MAX) const {
    return tokenizer.encode(text, false, untrusted, maxIds);
  }
  bool isSpecial(int32_t id) const { return tokenizer.isSpecial(id); }
  /// The bytes that one token adds to a text; see Tokenizer::bytesOf.
  std::string bytesOf(int32_t id) const { return tokenizer.bytesOf(id); }
  /// Whether these bytes are whole characters.
  bool isText(int32_t id) const;
  /// The text of one token; an incomplete character becomes U+FFFD.
  std::string textOf(int32_t id) const;
  /// The token sequences whose text contains one of `texts`: a single token that contains it, or a
  /// token that ends with its beginning, followed by the tokens of the rest.
  std::vector<Tokens> sequencesWriting(const std::vector<std::string> &texts) const;
  /// Whether `prompt` has text; otherwise all of its tokens are special, such as BOS, and the text
  /// begins after it.
  bool hasText(const Tokens &prompt) const;
  /// A decoder for a text, or with `continuation` for what follows one; see Tokenizer::Decoder.
  Tokenizer::Decoder decoder(bool continuation) const {
    return Tokenizer::Decoder(tokenizer, continuation);
  }
  /// A decoder for the continuation of `prompt`.
  Tokenizer::Decoder decoderAfter(const Tokens &prompt) const { return decoder(hasText(prompt)); }
  /// A decoder for a whole text that spells out special tokens.
  Tokenizer::Decoder decoderWithSpecialTokens() const {
    return Tokenizer::Decoder(tokenizer, /*continuation=*/false, /*printSpecial=*/true);
  }

private:
  ProgramTokenizer(std::vector<std::byte> table, Tokenizer tokenizer)
      : table(std::move(table)), tokenizer(std::move(tokenizer)) {}

  std::vector<std::byte>
      table; ///< What the tokenizer refers to; moving a vector keeps its addresses.
  Tokenizer tokenizer;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_PROGRAMTOKENIZER_H
