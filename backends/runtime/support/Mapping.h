// Owns a range of pages of the address space.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_MAPPING_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_MAPPING_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace mica::rt {

/// The result of mmap, unmapped on destruction.
class Mapping {
public:
  Mapping() = default;
  Mapping(void *address, uint64_t length) : address(address), length(length) {}
  Mapping(Mapping &&other) noexcept;
  Mapping &operator=(Mapping &&other) noexcept;
  ~Mapping();

  void *data() const { return address; }
  uint64_t size() const { return length; }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte *>(address), length};
  }

private:
  void *address = nullptr;
  uint64_t length = 0;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_MAPPING_H
