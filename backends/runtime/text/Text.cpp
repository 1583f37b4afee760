#include "backends/runtime/text/Text.h"
#include "backends/runtime/text/jinja/Template.h"

namespace mica::rt {

/// All that the chat templates write by themselves.
static std::vector<std::string> templateLiterals(const Manifest &manifest) {
  if (!manifest.chat)
    return {};
  const Manifest::Chat &chat = *manifest.chat;
  std::vector<std::string> literals = jinja::literalsOf(chat.chatTemplate);
  if (chat.toolTemplate)
    for (std::string &literal : jinja::literalsOf(*chat.toolTemplate))
      literals.push_back(std::move(literal));
  for (const auto &[name, token] : chat.specialTokens)
    literals.push_back(token);
  return literals;
}

Result<std::unique_ptr<Text>> Text::load(const program::ProgramFile &file,
                                         const Manifest &manifest) {
  Result<std::vector<std::byte>> table = file.read(program::SectionKind::Tokenizer);
  if (!table)
    return table.error();
  if (table->empty())
    return std::unique_ptr<Text>();
  Result<Tokenizer> tokenizer = Tokenizer::load(*table, templateLiterals(manifest));
  if (!tokenizer)
    return tokenizer.error();
  return std::unique_ptr<Text>(new Text(*std::move(table), *std::move(tokenizer)));
}

Tokenizer::Decoder Text::decoderAfter(const Tokens &prompt) const {
  // After special tokens only, such as BOS, the text begins with the first new token.
  return Tokenizer::Decoder(tokenizer, !tokenizer.decode(prompt).empty());
}

} // namespace mica::rt
