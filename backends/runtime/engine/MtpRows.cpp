#include "backends/runtime/engine/MtpRows.h"

#include <algorithm>

namespace mica::rt {

void MtpRows::add(int64_t position, int32_t token, std::span<const float> state) {
  if (position != end()) {
    drop(size());
    first = position;
  }
  tokens.push_back(token);
  states.insert(states.end(), state.begin(), state.end());
}

void MtpRows::rewind(int64_t length) {
  if (length >= end())
    return;
  size_t width = size() > 0 ? states.size() / size() : 0,
         kept = static_cast<size_t>(std::max<int64_t>(0, length - first));
  tokens.resize(kept);
  states.resize(kept * width);
  first = std::min(first, length);
}

std::span<const float> MtpRows::state(size_t i) const {
  size_t width = states.size() / size();
  return std::span(states).subspan(i * width, width);
}

void MtpRows::drop(size_t count) {
  if (count == 0)
    return;
  size_t width = states.size() / size();
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(count));
  states.erase(states.begin(), states.begin() + static_cast<ptrdiff_t>(count * width));
  first += static_cast<int64_t>(count);
}

} // namespace mica::rt
