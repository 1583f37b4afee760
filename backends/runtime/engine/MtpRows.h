// The rows that a multi-token prediction head has not computed yet.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_MTPROWS_H
#define MICA_BACKENDS_RUNTIME_ENGINE_MTPROWS_H

#include "backends/runtime/abi/Tokens.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mica::rt {

/// Of one sequence. A row of the head at position p consists of the hidden state of the model's row
/// at p and the token at p + 1, so it can only be computed once that token is known. These are the
/// model's last rows, at consecutive positions; the head has computed those before them.
class MtpRows {
public:
  /// Adds the model's row at `position`. If it does not follow the last one, it is the first.
  void add(int64_t position, int32_t token, std::span<const float> state);
  /// Discards rows at `length` and after it.
  void rewind(int64_t length);

  size_t size() const { return tokens.size(); }
  /// The position after the last row.
  int64_t end() const { return first + static_cast<int64_t>(size()); }
  /// Position `i` of the rows, its hidden state, and the token after it, which is `next` for the
  /// last row.
  int64_t position(size_t i) const { return first + static_cast<int64_t>(i); }
  std::span<const float> state(size_t i) const;
  int32_t tokenAfter(size_t i, int32_t next) const { return i + 1 < size() ? tokens[i + 1] : next; }
  /// Discards the first `count` rows, which the head has computed.
  void drop(size_t count);

private:
  int64_t first = 0;
  Tokens tokens;
  std::vector<float> states; ///< f32[rows, hidden]
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_MTPROWS_H
