// Decodes the tokens of a request to text that ends before a stop string.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TEXTSTREAM_H
#define MICA_BACKENDS_RUNTIME_TEXT_TEXTSTREAM_H

#include "backends/runtime/text/StopSequences.h"
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/tokenizer/Tokenizer.h"

namespace mica::rt {

class TextStream {
public:
  /// Stop strings must not be empty, and must outlive the stream.
  TextStream(Tokenizer::Decoder decoder, std::span<const std::string> stops)
      : decoder(std::move(decoder)), stop(stops) {}

  /// The next part of the text: whole characters, and no part of a stop string.
  std::string push(int32_t token) {
    std::string text = decoder.push(token);
    return pushText(text);
  }
  /// The same for text that is not a single token.
  std::string pushText(std::string_view text) {
    numCharacters += tokenizer::countCharacters(text);
    return counted(stop.push(text));
  }
  /// Ends the text.
  std::string finish() {
    std::string rest = stop.push(decoder.finish());
    return counted(rest + stop.finish());
  }
  /// The characters that the tokens so far have completed, including those of a stop string.
  int64_t characters() const { return numCharacters; }
  /// The characters that have been returned, which precede a stop string.
  int64_t returnedCharacters() const { return numReturned; }
  /// Whether a stop string was found; no text follows.
  bool stopped() const { return stop.stopped(); }

private:
  std::string counted(std::string text) {
    numReturned += tokenizer::countCharacters(text);
    return text;
  }

  Tokenizer::Decoder decoder;
  StopSequences stop;
  int64_t numCharacters = 0, numReturned = 0;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_TEXTSTREAM_H
