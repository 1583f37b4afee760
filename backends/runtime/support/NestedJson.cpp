#include "backends/runtime/support/NestedJson.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace mica::rt {

using Json = nlohmann::ordered_json;

namespace {
/// Builds the value of a text. nlohmann's own builder looks every key up among those before it, and
/// its callbacks search the enclosing array after every object: both take quadratic time.
class Builder final : public nlohmann::json_sax<Json> {
public:
  Builder(std::string &problem, const std::stop_token &stop) : problem(problem), stop(stop) {}

  Json take() { return std::move(values.front()); }

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t &) override { return add(value); }
  bool string(string_t &value) override { return count() && add(std::move(value)); }
  bool binary(binary_t &) override { return false; }
  bool key(string_t &value) override {
    keys.push_back(std::move(value));
    return count();
  }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override;
  bool end_array() override;
  bool parse_error(size_t bytes, const std::string &token,
                   const nlohmann::detail::exception &error) override;

private:
  bool fail(std::string text) {
    problem = std::move(text);
    return false;
  }
  template <typename Value> bool add(Value &&value) {
    values.emplace_back(std::forward<Value>(value));
    return !stop.stop_requested();
  }
  bool count() {
    return ++parts <= kMaxParts ||
           fail("has more than " + std::to_string(kMaxParts) + " strings and objects; shorten it");
  }
  bool open() {
    begins.push_back(values.size());
    if (begins.size() > kMaxNesting)
      return fail("nested more than " + std::to_string(kMaxNesting) + " deep; shorten it");
    return count();
  }
  /// Replaces the values since `begin` by one that holds them.
  bool close(size_t begin, Json value) {
    begins.pop_back();
    values.resize(begin);
    return add(std::move(value));
  }

  std::string &problem;
  const std::stop_token &stop;
  size_t parts = 0;
  std::vector<Json> values;      ///< complete ones of the open arrays and objects
  std::vector<std::string> keys; ///< of those that are values of open objects
  std::vector<size_t> begins;    ///< of the values of each open array or object
};

/// `bytes` have been read; the last ones are those of `token`, which has caused the error.
bool Builder::parse_error(size_t bytes, const std::string &token,
                          const nlohmann::detail::exception &error) {
  constexpr int outOfRange = 406; // of nlohmann's exceptions
  if (error.id == outOfRange)
    return fail("the number at byte " + std::to_string(bytes - token.size() + 1) +
                " is beyond a double; write a smaller one");
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing
  // object key - unexpected end of input; expected string literal". The token may be long.
  std::string text = error.what();
  if (size_t reason = text.find(" - "); reason != text.npos)
    text.erase(0, reason + 3);
  text.resize(std::min(text.find("; last read: "), text.size()));
  return fail("not JSON at byte " + std::to_string(bytes) + ": " + text);
}

bool Builder::end_array() {
  size_t begin = begins.back();
  auto first = values.begin() + static_cast<ptrdiff_t>(begin);
  Json::array_t array(std::make_move_iterator(first), std::make_move_iterator(values.end()));
  return close(begin, std::move(array));
}

bool Builder::end_object() {
  size_t begin = begins.back(), size = values.size() - begin, firstKey = keys.size() - size;
  std::vector<const std::string *> sorted;
  for (size_t i = firstKey; i < keys.size(); ++i)
    sorted.push_back(&keys[i]);
  std::sort(sorted.begin(), sorted.end(), [](auto *a, auto *b) { return *a < *b; });
  auto twice =
      std::adjacent_find(sorted.begin(), sorted.end(), [](auto *a, auto *b) { return *a == *b; });
  if (twice != sorted.end())
    return fail("the key " + Json(**twice).dump() + " occurs twice in one object; leave one out");
  // Growing it would copy the values, because keys are constant.
  Json::object_t object;
  object.reserve(size);
  for (size_t i = 0; i < size; ++i)
    object.emplace_back(std::move(keys[firstKey + i]), std::move(values[begin + i]));
  keys.resize(firstKey);
  return close(begin, std::move(object));
}
} // namespace

/// The first JSON escape in `text` that is an unpaired surrogate, which UTF-8 cannot represent;
/// empty if there is none.
static std::string_view loneSurrogate(std::string_view text) {
  auto unitAt = [&](size_t at) {
    uint32_t unit = 0;
    if (at + 6 > text.size() || text.substr(at, 2) != "\\u")
      return unit;
    auto [end, error] = std::from_chars(text.data() + at + 2, text.data() + at + 6, unit, 16);
    return end == text.data() + at + 6 ? unit : 0;
  };
  for (size_t at = text.find('\\'); at != text.npos; at = text.find('\\', at)) {
    uint32_t unit = unitAt(at), next = unitAt(at + 6);
    bool first = unit >= 0xD800 && unit < 0xDC00, second = unit >= 0xDC00 && unit < 0xE000;
    bool whole = first && next >= 0xDC00 && next < 0xE000;
    if ((first && !whole) || second)
      return text.substr(at, 6);
    at = std::min(at + (whole ? 12 : 2), text.size());
  }
  return {};
}

Json parseNested(std::string_view text, std::string &problem, const std::stop_token &stop) {
  problem.clear();
  Builder builder(problem, stop);
  if (Json::sax_parse(text, &builder))
    return builder.take();
  if (std::string_view half = loneSurrogate(text);
      problem.find("surrogate") != problem.npos && !half.empty())
    problem =
        std::string(half) + " is an unpaired surrogate; write both halves or the character itself";
  return Json(Json::value_t::discarded);
}

uint64_t maxParsedBytes(std::string_view text) {
  uint64_t values = 1, parts = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString && c == '\\') {
      ++i;
    } else if (c == '"') {
      inString = !inString;
      parts += inString;
    } else if (!inString) {
      parts += c == '[' || c == '{';
      values += c == '[' || c == '{' || c == ',' || c == ':';
    }
  }
  // A value is in the builder's list, which is copied when it grows, or becomes a container; malloc
  // keeps what was freed. Each key, string and container is a separate object; a key also has
  // entries in several lists. A text is in two buffers of the parser that grow, and in the value.
  constexpr uint64_t bytesOfText = 4, bytesOfValue = 3 * sizeof(Json), bytesOfPart = 128;
  return bytesOfText * text.size() + bytesOfValue * values +
         bytesOfPart * std::min<uint64_t>(parts, kMaxParts);
}

} // namespace mica::rt
