#include "backends/runtime/support/SizeText.h"

#include <cstdio>
#include <iterator>

namespace mica::rt {

std::string countText(int64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string bytesText(double bytes) {
  static constexpr const char *units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  char text[64];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", bytes, units[unit]);
  return text;
}

std::string bitsPerWeightText(double bytes, double weights) {
  if (weights == 0)
    return {};
  char text[64];
  std::snprintf(text, sizeof text, "%.2f bits per weight", 8 * bytes / weights);
  return text;
}

} // namespace mica::rt
