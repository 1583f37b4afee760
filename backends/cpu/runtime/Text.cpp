#include "backends/cpu/runtime/Text.h"

namespace mica::rt {

#if MICA_HAS_TOKENIZER
namespace {
class Stream final : public TextStream {
public:
  Stream(const Tokenizer &tokenizer, bool continuation) : decoder(tokenizer, continuation) {}
  std::string push(int32_t token) override { return decoder.push(token); }
  std::string finish() override { return decoder.finish(); }

private:
  Tokenizer::Decoder decoder;
};

class Table final : public Text {
public:
  Table(std::vector<std::byte> bytes, Tokenizer tokenizer)
      : bytes(std::move(bytes)), tokenizer(std::move(tokenizer)) {}
  Tokens encode(std::string_view text) const override { return tokenizer.encode(text, true); }
  std::unique_ptr<TextStream> stream(const Tokens &prompt) const override {
    // After special tokens only, such as BOS, the text begins with the first new token.
    return std::make_unique<Stream>(tokenizer, !tokenizer.decode(prompt).empty());
  }

private:
  std::vector<std::byte>
      bytes; ///< What the tokenizer refers to; moving a vector keeps its addresses.
  Tokenizer tokenizer;
};
} // namespace

Result<std::unique_ptr<Text>> Text::load(const program::ProgramFile &file) {
  Result<std::vector<std::byte>> bytes = file.read(program::SectionKind::Tokenizer);
  if (!bytes)
    return bytes.error();
  if (bytes->empty())
    return std::unique_ptr<Text>();
  Result<Tokenizer> tokenizer = Tokenizer::load(*bytes);
  if (!tokenizer)
    return tokenizer.error();
  return std::unique_ptr<Text>(std::make_unique<Table>(*std::move(bytes), *std::move(tokenizer)));
}
#else
Result<std::unique_ptr<Text>> Text::load(const program::ProgramFile &) {
  return std::unique_ptr<Text>();
}
#endif

} // namespace mica::rt
