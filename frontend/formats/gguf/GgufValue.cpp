#include "frontend/formats/gguf/GgufValue.h"

#include "frontend/support/InputError.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"

#include <charconv>
#include <cmath>

namespace mica {

template <typename T> static T load(llvm::ArrayRef<uint8_t> bytes) {
  return llvm::support::endian::read<T, llvm::endianness::little>(bytes.data());
}

/// The size of an array's elements in bytes; 0: not all the same.
static uint64_t widthOf(GgufKind kind) {
  switch (kind) {
  case GgufKind::U8:
  case GgufKind::I8:
  case GgufKind::Bool:
    return 1;
  case GgufKind::U16:
  case GgufKind::I16:
    return 2;
  case GgufKind::U32:
  case GgufKind::I32:
  case GgufKind::F32:
    return 4;
  case GgufKind::U64:
  case GgufKind::I64:
  case GgufKind::F64:
    return 8;
  case GgufKind::String:
  case GgufKind::Array:
    return 0;
  }
  return 0;
}

std::optional<int64_t> GgufValue::integer() const {
  switch (valueKind) {
  case GgufKind::U8:
    return load<uint8_t>(bytes);
  case GgufKind::I8:
    return load<int8_t>(bytes);
  case GgufKind::U16:
    return load<uint16_t>(bytes);
  case GgufKind::I16:
    return load<int16_t>(bytes);
  case GgufKind::U32:
    return load<uint32_t>(bytes);
  case GgufKind::I32:
    return load<int32_t>(bytes);
  case GgufKind::I64:
    return load<int64_t>(bytes);
  case GgufKind::U64:
    if (auto value = load<uint64_t>(bytes); value <= uint64_t(INT64_MAX))
      return static_cast<int64_t>(value);
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

static double shortestDecimal(float value) {
  char text[32];
  auto [end, status] = std::to_chars(text, std::end(text), value);
  double result = value;
  if (status == std::errc() && std::isfinite(value))
    std::from_chars(text, end, result);
  return result;
}

std::optional<double> GgufValue::number() const {
  if (valueKind == GgufKind::F32)
    return shortestDecimal(load<float>(bytes));
  if (valueKind == GgufKind::F64)
    return load<double>(bytes);
  if (auto whole = integer())
    return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<bool> GgufValue::boolean() const {
  return valueKind == GgufKind::Bool ? std::optional(bytes[0] != 0) : std::nullopt;
}

std::optional<llvm::StringRef> GgufValue::string() const {
  return valueKind == GgufKind::String ? std::optional(llvm::toStringRef(bytes)) : std::nullopt;
}

std::optional<std::vector<llvm::StringRef>> GgufValue::strings() const {
  if (valueKind != GgufKind::Array || element != GgufKind::String)
    return std::nullopt;
  std::vector<llvm::StringRef> result;
  llvm::ArrayRef<uint8_t> rest = bytes;
  for (uint64_t i = 0; i < count; ++i) {
    auto length = load<uint64_t>(rest);
    result.push_back(llvm::toStringRef(rest.slice(sizeof(length), length)));
    rest = rest.drop_front(sizeof(length) + length);
  }
  return result;
}

GgufValue GgufValue::at(uint64_t index) const {
  uint64_t width = widthOf(element);
  return {element, bytes.slice(index * width, width)};
}

std::optional<std::vector<float>> GgufValue::floats() const {
  if (valueKind != GgufKind::Array || element != GgufKind::F32)
    return std::nullopt;
  std::vector<float> result;
  for (uint64_t i = 0; i < count; ++i)
    result.push_back(load<float>(bytes.drop_front(i * sizeof(float))));
  return result;
}

std::optional<std::vector<int64_t>> GgufValue::integers() const {
  if (valueKind != GgufKind::Array || widthOf(element) == 0)
    return std::nullopt;
  std::vector<int64_t> result;
  for (uint64_t i = 0; i < count; ++i) {
    auto value = at(i).integer();
    if (!value)
      return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

std::optional<std::vector<bool>> GgufValue::booleans() const {
  if (valueKind != GgufKind::Array || element != GgufKind::Bool)
    return std::nullopt;
  std::vector<bool> result;
  for (uint64_t i = 0; i < count; ++i)
    result.push_back(*at(i).boolean());
  return result;
}

std::string GgufValue::shown() const {
  if (auto text = string())
    return inQuotes(*text);
  if (auto flag = boolean())
    return *flag ? "true" : "false";
  if (auto whole = integer())
    return std::to_string(*whole);
  if (valueKind == GgufKind::U64)
    return std::to_string(load<uint64_t>(bytes));
  if (auto value = number()) {
    char text[40];
    return std::string(text, std::to_chars(text, std::end(text), *value).ptr);
  }
  return "an array of " + std::to_string(count);
}

} // namespace mica
