// The tokens of a request as text that ends before a stop string.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TEXTSTREAM_H
#define MICA_BACKENDS_RUNTIME_TEXT_TEXTSTREAM_H

#include "backends/runtime/text/StopSequences.h"
#include "backends/runtime/text/tokenizer/Tokenizer.h"

namespace mica::rt {

class TextStream {
public:
  /// No stop string may be empty.
  TextStream(Tokenizer::Decoder decoder, std::vector<std::string> stops)
      : decoder(std::move(decoder)), stop(std::move(stops)) {}

  /// What the text continues with: whole characters, and nothing of a stop string.
  std::string push(int32_t token) { return stop.push(decoder.push(token)); }
  /// The same for a text that is not a single token.
  std::string pushText(std::string_view text) { return stop.push(text); }
  /// The end of the text.
  std::string finish() {
    std::string rest = stop.push(decoder.finish());
    return rest + stop.finish();
  }
  /// Whether a stop string has come; no text follows.
  bool stopped() const { return stop.stopped(); }

private:
  Tokenizer::Decoder decoder;
  StopSequences stop;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_TEXTSTREAM_H
