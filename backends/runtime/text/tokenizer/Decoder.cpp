#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/tokenizer/TokenizerParts.h"

namespace mica::rt {

using namespace tokenizer;

struct Tokenizer::Decoder::State {
  State(const Tokenizer &tokenizer, bool continuation, bool printSpecial)
      : tokenizer(tokenizer), table(tokenizer.parts->table), printSpecial(printSpecial) {
    if (continuation)
      atStart = false;
    stripLeft = table.stripCount;
  }

  std::string pieceText(int32_t id) {
    if ((table.pieceFlags[id] & PieceFlags::unknown) && !table.unknownText.empty())
      return std::string(table.unknownText); // its spaces are not the text's
    std::string text(table.piece(id));
    if (atStart && firstToken && table.decoderStart == DecoderStart::FirstToken)
      replaceAll(text, table.stripped, "");
    for (const Replacement &entry : table.replacements)
      replaceAll(text, entry.from, entry.to);
    stripStart(text);
    firstToken = false;
    return text;
  }

  static void replaceAll(std::string &text, std::string_view from, std::string_view to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  }

  void stripStart(std::string &text) {
    if (!atStart)
      return;
    size_t max = table.decoderStart == DecoderStart::Stream      ? stripLeft
                 : table.decoderStart == DecoderStart::EachToken ? 1
                                                                 : 0;
    size_t times = 0;
    while (times < max &&
           std::string_view(text).substr(times * table.stripped.size()).starts_with(table.stripped))
      ++times;
    text.erase(0, times * table.stripped.size());
    stripLeft -= table.decoderStart == DecoderStart::Stream ? times : 0;
  }

  const Tokenizer &tokenizer;
  const Table &table;
  Utf8Stream stream;
  size_t stripLeft = 0;
  bool atStart = true, firstToken = true; // nothing printed; no token seen
  bool printSpecial;
};

Tokenizer::Decoder::Decoder(const Tokenizer &tokenizer, bool continuation, bool printSpecial)
    : state(std::make_unique<State>(tokenizer, continuation, printSpecial)) {}
Tokenizer::Decoder::Decoder(Decoder &&) noexcept = default;
Tokenizer::Decoder &Tokenizer::Decoder::operator=(Decoder &&) noexcept = default;
Tokenizer::Decoder::~Decoder() = default;

std::string Tokenizer::Decoder::push(int32_t id) {
  State &s = *state;
  if (id < 0 || id >= s.tokenizer.size())
    return {};
  std::string out;
  if (!s.printSpecial && s.tokenizer.isSpecial(id)) {
    if (s.table.pieceFlags[id] & PieceFlags::control) // ends a run of bytes, although it is not
                                                      // printed
      s.stream.flush(out, /*perByte=*/true);
    return out;
  }
  if (s.table.has(ModelFlags::byteLevel)) {
    // All bytes are one stream; an ill-formed part becomes one U+FFFD.
    s.stream.push(s.pieceText(id), out, /*perByte=*/false);
  } else if (s.table.pieceFlags[id] & PieceFlags::byte) {
    s.stream.push(s.table.piece(id), out, /*perByte=*/true);
    s.firstToken = false;
  } else {
    // A text piece ends a sequence of bytes.
    s.stream.flush(out, /*perByte=*/true);
    s.atStart &= out.empty();
    s.stream.push(s.pieceText(id), out, /*perByte=*/true);
  }
  s.atStart &= out.empty() && s.stream.empty();
  return out;
}

std::string Tokenizer::Decoder::finish() {
  std::string out;
  state->stream.flush(out, !state->table.has(ModelFlags::byteLevel));
  state->atStart = state->firstToken = true;
  state->stripLeft = state->table.stripCount;
  return out;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  Decoder decoder(*this);
  std::string text;
  for (int32_t id : ids)
    text += decoder.push(id);
  return text += decoder.finish();
}

std::string Tokenizer::bytesOf(int32_t id) const {
  if (id < 0 || id >= size())
    return {};
  const Table &table = parts->table;
  if (!table.has(ModelFlags::byteLevel) && (table.pieceFlags[id] & PieceFlags::byte))
    return std::string(table.piece(id));
  return Decoder::State(*this, /*continuation=*/true, /*printSpecial=*/true).pieceText(id);
}

} // namespace mica::rt
