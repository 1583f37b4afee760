// XXH3-64, at once or in pieces. Nothing else uses xxHash.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_HASH_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_HASH_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace mica::rt {

uint64_t hashBytes(const void *data, size_t size);

class Hasher {
public:
  Hasher();
  ~Hasher();
  void reset();
  void update(std::span<const std::byte> bytes);
  uint64_t digest() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_HASH_H
