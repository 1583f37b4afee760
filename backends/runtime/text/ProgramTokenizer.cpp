#include "backends/runtime/text/ProgramTokenizer.h"
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/jinja/Template.h"

#include <algorithm>
#include <set>

namespace mica::rt {

/// The literal texts of the chat templates.
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

Result<std::unique_ptr<ProgramTokenizer>> ProgramTokenizer::load(const program::ProgramFile &file,
                                                                 const Manifest &manifest) {
  Result<std::vector<std::byte>> table = file.read(program::SectionKind::Tokenizer);
  if (!table)
    return table.error();
  if (table->empty())
    return std::unique_ptr<ProgramTokenizer>();
  return fromTable(*std::move(table), manifest);
}

Result<std::unique_ptr<ProgramTokenizer>> ProgramTokenizer::fromTable(std::vector<std::byte> table,
                                                                      const Manifest &manifest) {
  Result<Tokenizer> tokenizer = Tokenizer::load(table, templateLiterals(manifest));
  if (!tokenizer)
    return tokenizer.error();
  return std::unique_ptr<ProgramTokenizer>(
      new ProgramTokenizer(std::move(table), *std::move(tokenizer)));
}

Result<Tokens> ProgramTokenizer::encode(std::string_view text, bool addSpecial,
                                        bool parseSpecial) const {
  ByteRanges untrusted;
  if (!parseSpecial)
    untrusted.add(0, text.size());
  return tokenizer.encode(text, addSpecial, untrusted);
}

bool ProgramTokenizer::hasText(const Tokens &prompt) const {
  Tokenizer::Decoder decoder(tokenizer);
  for (int32_t token : prompt)
    if (!decoder.push(token).empty())
      return true;
  return !decoder.finish().empty();
}

bool ProgramTokenizer::isText(int32_t id) const { return tokenizer::isUtf8(bytesOf(id)); }

std::string ProgramTokenizer::textOf(int32_t id) const {
  Tokenizer::Decoder decoder(tokenizer, /*continuation=*/true, /*printSpecial=*/true);
  std::string text = decoder.push(id);
  return text + decoder.finish();
}

std::vector<Tokens>
ProgramTokenizer::sequencesWriting(const std::vector<std::string> &texts) const {
  std::set<Tokens> found;
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    std::string written = textOf(id);
    for (const std::string &text : texts) {
      if (text.empty())
        continue;
      if (written.find(text) != written.npos) {
        found.insert({id});
        continue;
      }
      for (size_t size = std::min(text.size() - 1, written.size()); size > 0; --size) {
        if (!written.ends_with(std::string_view(text).substr(0, size)))
          continue;
        Tokens sequence = {id};
        if (Result<Tokens> rest = tokenizer.encode(std::string_view(text).substr(size), false))
          sequence.insert(sequence.end(), rest->begin(), rest->end());
        // Some tokenizers add a space before the text.
        std::string spelled;
        for (int32_t token : sequence)
          spelled += textOf(token);
        if (spelled.find(text) != spelled.npos)
          found.insert(std::move(sequence));
      }
    }
  }
  return {found.begin(), found.end()};
}

} // namespace mica::rt
