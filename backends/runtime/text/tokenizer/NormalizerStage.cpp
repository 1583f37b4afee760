#include "backends/runtime/text/tokenizer/NormalizerStage.h"
#include "backends/runtime/text/base/Utf8.h"

namespace mica::rt::tokenizer {

std::string RangesCarrier::repaired(const std::string &broken) {
  std::string text = repairUtf8(broken);
  if (!ranges.empty()) {
    carried = {};
    carried.add(0, text.size());
  }
  return text;
}

bool replacedMovesStart(std::string_view from, std::string_view to) {
  return !from.empty() && (to.empty() || from.size() > charLength(from[0]));
}

} // namespace mica::rt::tokenizer
