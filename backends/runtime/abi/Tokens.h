// Token ids.
#ifndef MICA_BACKENDS_RUNTIME_ABI_TOKENS_H
#define MICA_BACKENDS_RUNTIME_ABI_TOKENS_H

#include <cstdint>
#include <vector>

namespace mica::rt {

using Tokens = std::vector<int32_t>;

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ABI_TOKENS_H
