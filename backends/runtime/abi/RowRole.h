// The role of the rows of a call of the model.
#ifndef MICA_BACKENDS_RUNTIME_ABI_ROWROLE_H
#define MICA_BACKENDS_RUNTIME_ABI_ROWROLE_H

#include <cstdint>

namespace mica::rt {

/// The role of a row, which determines its arithmetic if prefill and decode are computed
/// differently. It is the second argument of mica_forward: all rows of a call have the same one.
enum class RowRole : int64_t {
  Decode = 0, ///< A sampled or drafted token.
  Prompt =
      1,     ///< A token of a prompt, including the last one, whatever the number of rows per call.
  Draft = 2, ///< A row of the multi-token prediction head, not of the model: see Session.
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_ROWROLE_H
