// The values of options: numbers and words.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_OPTIONVALUES_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_OPTIONVALUES_H

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace mica::rt {

/// `text` as a number; nothing if it is not one or is too large.
template <typename T> std::optional<T> parseNumber(const std::string &text) {
  T value;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool all = failure == std::errc() && end == text.data() + text.size();
  return all ? std::optional(value) : std::nullopt;
}

/// Makes `option`, whose values are a list, take one value each time it is given; returns it.
CLI::Option *repeatable(CLI::Option *option);

/// Accepts decimal digits with a value in [min, max], for `transform`. CLI11's own conversion
/// accepts octal and hexadecimal numbers, and wraps negative ones.
CLI::Validator wholeNumber(uint64_t min, uint64_t max = std::numeric_limits<int64_t>::max());

/// Accepts finite decimal numbers in [min, max].
CLI::Validator numberBetween(double min, double max);

/// Accepts the words `known`; the error for another word suggests the closest one.
CLI::Validator oneOf(std::vector<std::string> known);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_OPTIONVALUES_H
