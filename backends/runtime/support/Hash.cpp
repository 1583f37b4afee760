#include "backends/runtime/support/Hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace mica::rt {

struct Hasher::State {
  XXH3_state_t xxh;
};

uint64_t hashBytes(const void *data, size_t size) { return XXH3_64bits(data, size); }

Hasher::Hasher() : state(std::make_unique<State>()) { reset(); }
Hasher::~Hasher() = default;
void Hasher::reset() { XXH3_64bits_reset(&state->xxh); }
void Hasher::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state->xxh, bytes.data(), bytes.size());
}
uint64_t Hasher::digest() const { return XXH3_64bits_digest(&state->xxh); }

} // namespace mica::rt
