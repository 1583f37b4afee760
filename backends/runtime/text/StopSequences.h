// Ends a text before the first of some strings, wherever the tokens of such a string begin and end.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_STOPSEQUENCES_H
#define MICA_BACKENDS_RUNTIME_TEXT_STOPSEQUENCES_H

#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// How many bytes at the end of `text` begin `string`, which is not empty, without completing it.
size_t begunAtEnd(std::string_view text, std::string_view string);

class StopSequences {
public:
  /// No string may be empty.
  explicit StopSequences(std::vector<std::string> strings) : strings(std::move(strings)) {}

  /// Takes what the text continues with and gives what can be printed: nothing of a stop string,
  /// and nothing that may yet become one.
  std::string push(std::string_view text);
  /// The text's end: what was held back.
  std::string finish();
  /// Whether a stop string has come; nothing is printed from then on.
  bool stopped() const { return found; }

private:
  std::vector<std::string> strings;
  std::string held;
  bool found = false;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_STOPSEQUENCES_H
