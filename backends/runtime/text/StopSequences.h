// Ends a text before the first stop string, independently of token boundaries.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_STOPSEQUENCES_H
#define MICA_BACKENDS_RUNTIME_TEXT_STOPSEQUENCES_H

#include <span>
#include <string>
#include <string_view>

namespace mica::rt {

/// The length of the longest suffix of `text` that is a proper prefix of `string` (not empty).
size_t begunAtEnd(std::string_view text, std::string_view string);

class StopSequences {
public:
  /// Strings must not be empty, and must outlive it.
  explicit StopSequences(std::span<const std::string> strings) : strings(strings) {}

  /// Appends to the text and returns what can be printed: no part of a stop string, and nothing
  /// that may still become one.
  std::string push(std::string_view text);
  /// Ends the text and returns what was held back.
  std::string finish();
  /// Whether a stop string was found; nothing is printed from then on.
  bool stopped() const { return found; }

private:
  std::span<const std::string> strings;
  std::string held;
  bool found = false;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_STOPSEQUENCES_H
