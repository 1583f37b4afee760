// Zeroed memory that costs nothing until it is touched.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_MEMORY_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_MEMORY_H

#include "backends/runtime/support/Mapping.h"
#include "backends/runtime/support/Result.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mica::rt {

/// Where the kernel provides them, huge pages (2 MiB) save most of the TLB misses;
/// but a huge page is there whole once a byte of it is touched.
enum class Pages { Small, Large };

/// Anonymous pages, reserved without commitment (MAP_NORESERVE), zero at first touch, page-aligned;
/// of large ones all but the rest after the last whole one.
class Memory : public Mapping {
public:
  /// Errors: no address space left, or an absurd size; they end in `hint`.
  static Result<Memory>
  reserve(uint64_t bytes, Pages pages = Pages::Small,
          std::string_view hint = "use fewer sequences or compile with a smaller --max-seq");
  Memory() = default;

private:
  using Mapping::Mapping;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_MEMORY_H
