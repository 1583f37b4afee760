// What all command lines of Mica have in common: numbers, help, wrong usage.
#pragma once

#include "backends/runtime/support/Result.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace mica::rt {

/// Accepts decimal digits with a value in [least, most], for `transform`: CLI11's own conversion
/// takes octal and hexadecimal numbers as well, and wraps negative ones.
CLI::Validator wholeNumber(uint64_t least, uint64_t most = std::numeric_limits<int64_t>::max());

/// Accepts finite decimal numbers in [least, most].
CLI::Validator numberBetween(double least, double most);

/// Parses `words` (without the program's name). Gives the text that was asked for instead, by
/// --help or --version. Errors are wrong usage, on one line.
Result<std::optional<std::string>> parseWords(CLI::App &app, std::vector<std::string> words);

} // namespace mica::rt
