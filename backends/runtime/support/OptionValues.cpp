#include "backends/runtime/support/OptionValues.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/Spelling.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace mica::rt {

static std::string shortest(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

CLI::Option *repeatable(CLI::Option *option) {
  return option->type_size(1)->expected(1)->allow_extra_args(false)->multi_option_policy(
      CLI::MultiOptionPolicy::TakeAll);
}

CLI::Validator wholeNumber(uint64_t min, uint64_t max) {
  bool bounded = max < uint64_t(std::numeric_limits<int64_t>::max());
  std::string range = "from " + std::to_string(min) + (bounded ? " to " + std::to_string(max) : "");
  // --help omits an upper bound that is never reached.
  std::string shown = max < uint64_t(std::numeric_limits<int32_t>::max()) ? range
                      : min > 0 ? "from " + std::to_string(min)
                                : "";
  return CLI::Validator(
      [=](std::string &text) -> std::string {
        std::optional<uint64_t> value = parseNumber<uint64_t>(text);
        if (!value || *value < min || *value > max)
          return "'" + printable(text) + "' is not a whole number " + range;
        text = std::to_string(*value); // without leading zeros, which CLI11 interprets as octal
        return {};
      },
      shown);
}

CLI::Validator numberBetween(double min, double max) {
  std::string range = "from " + shortest(min) + " to " + shortest(max);
  return CLI::Validator(
      [=](const std::string &text) {
        std::optional<double> value = parseNumber<double>(text);
        bool good = value && std::isfinite(*value) && *value >= min && *value <= max;
        return good ? std::string() : "'" + printable(text) + "' is not a number " + range;
      },
      range);
}

CLI::Validator oneOf(std::vector<std::string> known) {
  std::string listed = "{" + CLI::detail::join(known, ",") + "}"; // read by describeOption
  return CLI::Validator(
      [known = std::move(known)](const std::string &text) -> std::string {
        if (std::find(known.begin(), known.end(), text) != known.end())
          return {};
        std::string closest = closestWord(text, known);
        return "'" + printable(text) + "' is not one of " + CLI::detail::join(known, ", ") +
               didYouMean(closest);
      },
      listed);
}

} // namespace mica::rt
