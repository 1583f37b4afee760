// Ids of tokens.
#pragma once

#include <cstdint>
#include <vector>

namespace mica::rt {

using Tokens = std::vector<int32_t>;

} // namespace mica::rt
