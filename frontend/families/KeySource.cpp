#include "frontend/families/KeySource.h"

#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

#include <cmath>

namespace mica {

KeySource::~KeySource() = default;

static llvm::Error wrong(llvm::StringRef path, llvm::StringRef name, const llvm::json::Value &value,
                         const llvm::Twine &expected, llvm::StringRef hint = hints::correct) {
  return inputError(path, "has " + inQuotes(name) + ": " + shown(value) + ", expected " + expected,
                    hint);
}

llvm::Error KeySource::wrongValue(llvm::StringRef key, const llvm::Twine &expected,
                                  llvm::StringRef hint) const {
  return wrong(path(), named(key), *find(key), expected, hint);
}

llvm::Error KeySource::missingKey(llvm::StringRef key, const llvm::Twine &why) const {
  return inputError(path(), "has no key " + inQuotes(named(key)) + ", " + why,
                    isText() ? llvm::StringLiteral("add it") : hints::fetch);
}

std::vector<llvm::StringRef> JsonKeys::keys() const {
  std::vector<llvm::StringRef> keys;
  for (const auto &entry : object)
    keys.push_back(entry.first);
  llvm::sort(keys);
  return keys;
}

std::vector<llvm::StringRef> NamedParameters::keys() const {
  std::vector<llvm::StringRef> keys;
  for (const auto &[key, _] : entries)
    keys.push_back(key);
  return keys;
}

const llvm::json::Value *NamedParameters::find(llvm::StringRef key) const {
  auto found = entries.find(key.str());
  return found == entries.end() ? nullptr : &found->second.value;
}

std::string NamedParameters::named(llvm::StringRef key) const {
  if (auto found = entries.find(key.str()); found != entries.end())
    return found->second.name;
  auto found = expected.find(key.str());
  return found == expected.end() ? key.str() : found->second;
}

/// Numbers without a fraction print without one: "1048576", not "1.048576e+06".
static std::string shown(double number) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (number == std::floor(number) && std::abs(number) < 1e15)
    stream << static_cast<int64_t>(number);
  else
    stream << llvm::format("%g", number);
  return text;
}

static std::string shown(Range range) {
  if (range.max == Range().max)
    return range.min == Range().min ? "" : " of at least " + shown(range.min);
  return " from " + shown(range.min) + " to " + shown(range.max);
}

llvm::Expected<double> readNumber(llvm::StringRef path, llvm::StringRef name,
                                  const llvm::json::Value &value, Range range) {
  auto number = value.getAsNumber();
  if (!number || !std::isfinite(*number) || *number < range.min || *number > range.max)
    return wrong(path, name, value, "a number" + shown(range));
  return *number;
}

llvm::Expected<int64_t> readInteger(llvm::StringRef path, llvm::StringRef name,
                                    const llvm::json::Value &value, Range range) {
  auto number = value.getAsInteger();
  if (!number || *number < range.min || *number > range.max)
    return wrong(path, name, value, "an integer" + shown(range));
  return *number;
}

llvm::Expected<std::vector<int64_t>> readIntegers(llvm::StringRef path, llvm::StringRef name,
                                                  const llvm::json::Value &value, Range range) {
  const llvm::json::Array *list = value.getAsArray();
  std::vector<int64_t> numbers;
  for (const llvm::json::Value &item :
       list ? llvm::ArrayRef(list->data(), list->size()) : llvm::ArrayRef(value)) {
    llvm::Expected<int64_t> number = readInteger(path, name, item, range);
    if (!number)
      return number.takeError();
    numbers.push_back(*number);
  }
  return numbers;
}

} // namespace mica
