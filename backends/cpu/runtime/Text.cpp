#include "backends/cpu/runtime/Text.h"

namespace mica::rt {

Result<std::unique_ptr<Text>> Text::load(const program::ProgramFile &file) {
  Result<std::vector<std::byte>> table = file.read(program::SectionKind::Tokenizer);
  if (!table)
    return table.error();
  if (table->empty())
    return std::unique_ptr<Text>();
  Result<Tokenizer> tokenizer = Tokenizer::load(*table);
  if (!tokenizer)
    return tokenizer.error();
  return std::unique_ptr<Text>(new Text(*std::move(table), *std::move(tokenizer)));
}

Tokenizer::Decoder Text::decoderAfter(const Tokens &prompt) const {
  // After special tokens only, such as BOS, the text begins with the first new token.
  return Tokenizer::Decoder(tokenizer, !tokenizer.decode(prompt).empty());
}

} // namespace mica::rt
