// Text that tracks which of its characters come from a conversation, so that a tokenizer can
// distinguish special tokens written by a template from the same spelling in a message.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_TRACKEDTEXT_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_TRACKEDTEXT_H

#include "backends/runtime/text/base/ByteRanges.h"

#include <string>
#include <string_view>

namespace mica::rt::jinja {

struct TrackedText {
  std::string bytes;
  ByteRanges untrusted; ///< text from the conversation, or derived from it

  /// Text of a single origin.
  static TrackedText of(std::string bytes, bool untrusted) {
    TrackedText text;
    text.bytes = std::move(bytes);
    if (untrusted)
      text.untrusted.add(0, text.bytes.size());
    return text;
  }

  size_t size() const { return bytes.size(); }
  bool tracked() const { return !untrusted.empty(); }

  void append(std::string_view piece, bool isUntrusted = false) {
    if (isUntrusted)
      untrusted.add(bytes.size(), bytes.size() + piece.size());
    bytes += piece;
  }
  void append(const TrackedText &other) { append(other, 0, other.size()); }
  /// Bytes [begin, end) of another text.
  void append(const TrackedText &other, size_t begin, size_t end) {
    untrusted.add(other.untrusted, begin, end, bytes.size());
    bytes.append(other.bytes, begin, end - begin);
  }
  /// A substring of `other.bytes`.
  void appendPiece(const TrackedText &other, std::string_view piece) {
    auto begin = static_cast<size_t>(piece.data() - other.bytes.data());
    append(other, begin, begin + piece.size());
  }
  TrackedText piece(std::string_view part) const {
    TrackedText text;
    text.appendPiece(*this, part);
    return text;
  }
};

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_TRACKEDTEXT_H
