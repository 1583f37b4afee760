#include "frontend/text/tokenizer/JsonNode.h"

namespace mica {

void Problem::report(llvm::StringRef path, const llvm::Twine &what, const llvm::Twine &hint) {
  if (found())
    return;
  message = (what + (path.empty() ? "" : " (" + path + ")")).str();
  this->hint = hint.str();
}

llvm::Error Problem::take() const {
  return found() ? inputError(file, message, hint) : llvm::Error::success();
}

JsonNode JsonNode::operator[](llvm::StringRef key) const {
  std::string childPath = path.empty() ? key.str() : path + "." + key.str();
  const llvm::json::Object *object = value ? value->getAsObject() : nullptr;
  return {object ? object->get(key) : nullptr, std::move(childPath), *problem};
}

JsonNode JsonNode::at(size_t index) const {
  const llvm::json::Array *array = value ? value->getAsArray() : nullptr;
  const llvm::json::Value *child = array && index < array->size() ? &(*array)[index] : nullptr;
  return {child, path + "[" + std::to_string(index) + "]", *problem};
}

std::string JsonNode::string() const {
  auto text = value ? value->getAsString() : std::nullopt;
  if (!text)
    refuse("a string is expected");
  return text ? text->str() : std::string();
}

bool JsonNode::boolean(bool fallback) const {
  if (absent())
    return fallback;
  auto result = value->getAsBoolean();
  if (!result)
    refuse("true or false is expected");
  return result.value_or(fallback);
}

int64_t JsonNode::integer(int64_t min, int64_t max) const {
  auto number = value ? value->getAsInteger() : std::nullopt;
  if (!number || *number < min || *number > max) {
    refuse("a whole number from " + llvm::Twine(min) + " to " + llvm::Twine(max) + " is expected");
    return min;
  }
  return *number;
}

const llvm::json::Array &JsonNode::array() const {
  static const llvm::json::Array empty;
  const llvm::json::Array *array = value ? value->getAsArray() : nullptr;
  if (!array)
    refuse("a list is expected");
  return array ? *array : empty;
}

const llvm::json::Object &JsonNode::object() const {
  static const llvm::json::Object empty;
  const llvm::json::Object *object = value ? value->getAsObject() : nullptr;
  if (!object)
    refuse("an object is expected");
  return object ? *object : empty;
}

void JsonNode::allowKeys(llvm::ArrayRef<llvm::StringRef> known) const {
  for (const auto &entry : object())
    if (!llvm::is_contained(known, llvm::StringRef(entry.first)))
      (*this)[entry.first].refuse("unknown key " + inQuotes(entry.first) +
                                      ", its meaning would be lost",
                                  "remove it if it has none");
}

void JsonNode::refuseType(llvm::StringRef type, llvm::StringRef what) const {
  (*this)["type"].refuseUnsupported("the " + what + " " + inQuotes(type));
}

} // namespace mica
