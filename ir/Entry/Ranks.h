// Programs that several processes run together.
#ifndef MICA_IR_ENTRY_RANKS_H
#define MICA_IR_ENTRY_RANKS_H

#include <cstdint>

namespace mica {

/// More ranks than any model is run by: a greater number is a mistake, which would cost the
/// interpreter a copy of each value per rank.
inline constexpr int64_t kMaxRanks = 4096;

} // namespace mica

#endif // MICA_IR_ENTRY_RANKS_H
