#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/Report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

namespace mica::rt {

namespace {
/// All of `text` as a number; nothing where it is none or too large.
template <typename T> std::optional<T> parsed(const std::string &text) {
  T value;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool all = failure == std::errc() && end == text.data() + text.size();
  return all ? std::optional(value) : std::nullopt;
}

std::string shortest(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::string_view trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  return first == text.npos ? text.substr(0, 0)
                            : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string unexpected(std::vector<std::string> words) {
  std::string list;
  for (const std::string &word : words)
    list += (list.empty() ? "'" : ", '") + printable(word) + "'";
  return (words.size() == 1 ? "the argument " : "the arguments ") + list +
         " can have no place here";
}
} // namespace

CLI::Validator wholeNumber(uint64_t least, uint64_t most) {
  bool bounded = most < uint64_t(std::numeric_limits<int64_t>::max());
  std::string range =
      "from " + std::to_string(least) + (bounded ? " to " + std::to_string(most) : "");
  return CLI::Validator(
      [=](std::string &text) -> std::string {
        std::optional<uint64_t> value = parsed<uint64_t>(text);
        if (!value || *value < least || *value > most)
          return "'" + printable(text) + "' is not a whole number " + range;
        text = std::to_string(*value); // without leading zeros, which CLI11 would take for octal
        return {};
      },
      range);
}

CLI::Validator numberBetween(double least, double most) {
  std::string range = "from " + shortest(least) + " to " + shortest(most);
  return CLI::Validator(
      [=](const std::string &text) {
        std::optional<double> value = parsed<double>(text);
        bool good = value && std::isfinite(*value) && *value >= least && *value <= most;
        return good ? std::string() : "'" + printable(text) + "' is not a number " + range;
      },
      range);
}

Result<std::optional<std::string>> parseWords(CLI::App &app, std::vector<std::string> words) {
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
    return std::optional<std::string>();
  } catch (const CLI::Success &wish) {
    std::ostringstream text;
    app.exit(wish, text, text);
    return std::optional(text.str());
  } catch (const CLI::ExtrasError &) {
    return Error{unexpected(app.remaining(/*recurse=*/true))};
  } catch (const CLI::ParseError &error) {
    return Error{std::string(trimmed(error.what()))};
  }
}

} // namespace mica::rt
