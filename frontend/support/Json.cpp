#include "frontend/support/Json.h"

#include "frontend/support/MappedFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace mica {
namespace {

/// Builds a value from the events of nlohmann's parser, which is not recursive.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
public:
  Builder(llvm::StringRef text, const JsonLimits &limits) : text(text), limits(limits) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(int64_t value) override { return add(value); }
  bool number_unsigned(uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string &) override { return add(value); }
  bool string(std::string &value) override { return add(std::move(value)); }
  // No test: only binary formats have such values.
  bool binary(nlohmann::json::binary_t &) override { return refuse("binary data"); }
  bool start_object(std::size_t) override { return open(llvm::json::Object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(llvm::json::Array()); }
  bool end_array() override { return close(); }
  bool key(std::string &name) override;
  bool parse_error(std::size_t position, const std::string &token,
                   const nlohmann::detail::exception &error) override;

  /// The problem, empty if there is none, and a hint.
  std::string problem, hint;
  llvm::json::Value root = nullptr;

private:
  /// An object or array under construction and, in an object, the key whose value comes next.
  struct Level {
    llvm::json::Value container;
    std::string key;
  };

  bool refuse(const llvm::Twine &why, llvm::StringRef otherHint = "");
  bool open(llvm::json::Value container);
  bool close();
  bool add(llvm::json::Value value);
  std::string where() const;

  llvm::StringRef text;
  const JsonLimits &limits;
  std::vector<Level> levels;
  size_t values = 0;
};

bool Builder::refuse(const llvm::Twine &why, llvm::StringRef otherHint) {
  problem = why.str();
  hint = (otherHint.empty() ? limits.hint : otherHint).str();
  return false;
}

/// The innermost current key, for messages.
std::string Builder::where() const {
  for (const Level &level : llvm::reverse(levels))
    if (!level.key.empty())
      return " near key " + inQuotes(level.key);
  return "";
}

bool Builder::key(std::string &name) {
  Level &level = levels.back();
  if (level.container.getAsObject()->get(name))
    return refuse("key " + inQuotes(name) + " occurs twice", "keep one");
  level.key = std::move(name);
  return true;
}

bool Builder::open(llvm::json::Value container) {
  if (levels.size() == limits.depth)
    return refuse("nests deeper than " + llvm::Twine(limits.depth) + " levels" + where());
  levels.push_back({std::move(container), ""});
  return true;
}

bool Builder::close() {
  llvm::json::Value done = std::move(levels.back().container);
  levels.pop_back();
  return add(std::move(done));
}

bool Builder::add(llvm::json::Value value) {
  if (++values > limits.values)
    return refuse("holds more than " + llvm::Twine(limits.values) + " values" + where());
  if (levels.empty())
    root = std::move(value);
  else if (auto *object = levels.back().container.getAsObject())
    object->try_emplace(std::exchange(levels.back().key, ""), std::move(value));
  else
    levels.back().container.getAsArray()->push_back(std::move(value));
  return true;
}

bool Builder::parse_error(std::size_t position, const std::string &,
                          const nlohmann::detail::exception &error) {
  llvm::StringRef before = text.take_front(position);
  size_t line = before.count('\n') + 1;
  size_t column = before.size() - (before.rfind('\n') + 1);
  const char *what = error.id == 406 ? "has a number out of range" : "is not valid JSON";
  return refuse(llvm::Twine(what) + " (line " + llvm::Twine(line) + ", column " +
                llvm::Twine(column) + where() + ")");
}

/// Python writes infinity as a bare word, which is not valid JSON: convert it to a string, which
/// some keys accept.
std::string quoteInfinity(llvm::StringRef text) {
  std::string quoted;
  bool inString = false;
  while (!text.empty()) {
    if (!inString && text.consume_front("Infinity")) {
      bool isNegative = llvm::StringRef(quoted).ends_with("-");
      quoted += isNegative ? "Infinity" : "\"Infinity\"";
      continue;
    }
    size_t length = inString && text.starts_with("\\") ? std::min<size_t>(2, text.size()) : 1;
    inString ^= text.front() == '"';
    quoted += text.take_front(length);
    text = text.drop_front(length);
  }
  return quoted;
}

} // namespace

llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text, llvm::StringRef file,
                                            const JsonLimits &limits) {
  if (text.size() > limits.bytes)
    return inputError(file,
                      "is larger than the " + llvm::Twine(limits.bytes) +
                          " bytes that such a file may have",
                      limits.hint);
  Builder builder(text, limits);
  // The parser would take a NUL byte for the end of the text.
  if (size_t nul = text.find('\0'); nul != llvm::StringRef::npos)
    return inputError(file, "is not valid JSON (a NUL byte at " + llvm::Twine(nul) + ")",
                      limits.hint);
  bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  if (!parsed || !builder.problem.empty())
    return inputError(file, builder.problem, builder.hint);
  return std::move(builder.root);
}

llvm::Expected<llvm::json::Object> readJsonObject(llvm::StringRef path, const JsonLimits &limits) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  llvm::StringRef text = llvm::toStringRef(file->bytes());
  std::string quoted;
  if (text.size() <= limits.bytes && text.contains("Infinity"))
    text = quoted = quoteInfinity(text);
  auto value = parseJson(text, path, limits);
  if (!value)
    return value.takeError();
  llvm::json::Object *object = value->getAsObject();
  if (!object)
    return inputError(path, "does not hold a JSON object", limits.hint);
  return std::move(*object);
}

std::string shown(const llvm::json::Value &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  constexpr size_t limit = 60;
  return text.size() <= limit ? text : text.substr(0, limit) + "...";
}

} // namespace mica
