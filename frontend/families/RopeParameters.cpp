#include "frontend/families/RopeParameters.h"

#include "frontend/families/Family.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"

namespace mica {

const llvm::json::Value *RopeParameters::get(llvm::StringRef key) {
  asked.push_back(key);
  const llvm::json::Value *value = source ? source->find(key) : nullptr;
  return value && value->kind() == llvm::json::Value::Null ? nullptr : value;
}

llvm::Expected<double> RopeParameters::number(llvm::StringRef key, Range range,
                                              std::optional<double> absent) {
  if (const llvm::json::Value *value = get(key))
    return readNumber(file, named(key), *value, range);
  if (absent)
    return *absent;
  return missing(key);
}

llvm::Expected<bool> RopeParameters::flag(llvm::StringRef key, bool absent) {
  const llvm::json::Value *value = get(key);
  if (!value)
    return absent;
  if (std::optional<bool> flag = value->getAsBoolean())
    return *flag;
  return source->wrongValue(key, "true or false");
}

llvm::Expected<int64_t> RopeParameters::original(std::optional<int64_t> absent) {
  constexpr llvm::StringLiteral key = "original_max_position_embeddings";
  if (const llvm::json::Value *value = get(key))
    return readInteger(file, named(key), *value, ranges::positions);
  if (absent)
    return *absent;
  return missing(key);
}

llvm::Expected<std::vector<double>> RopeParameters::numbers(llvm::StringRef key, int64_t size,
                                                            Range range) {
  const llvm::json::Value *value = get(key);
  const llvm::json::Array *list = value ? value->getAsArray() : nullptr;
  if (!list || static_cast<int64_t>(list->size()) != size)
    return inputError(file,
                      "has no list of " + llvm::Twine(size) + " numbers in " +
                          inQuotes(named(key)) + ", which this scaling needs",
                      hints::correct);
  std::vector<double> numbers;
  for (const llvm::json::Value &item : *list) {
    auto number = readNumber(file, named(key), item, range);
    if (!number)
      return number.takeError();
    numbers.push_back(*number);
  }
  return numbers;
}

llvm::Error RopeParameters::rejectUnknown() const {
  if (!source)
    return llvm::Error::success();
  for (llvm::StringRef key : source->keys())
    if (!llvm::is_contained(asked, key))
      return inputError(
          file, "has the key " + inQuotes(named(key)) + ", which is unknown for its scaling",
          "remove it if it has no effect");
  return llvm::Error::success();
}

} // namespace mica
