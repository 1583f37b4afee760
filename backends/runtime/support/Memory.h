// Zeroed memory that is allocated lazily.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_MEMORY_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_MEMORY_H

#include "backends/runtime/support/Mapping.h"
#include "backends/runtime/support/Result.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mica::rt {

/// Huge: huge pages (2 MiB) if the kernel provides them; they avoid most TLB misses, but touching
/// one byte allocates a whole huge page.
enum class Pages { Small, Huge };

/// Anonymous pages, reserved without commitment (MAP_NORESERVE), zero-initialized, page-aligned.
/// With huge pages, the rest after the last whole one is in small pages.
class Memory : public Mapping {
public:
  /// Errors: no address space left, or an absurd size; the message ends with `hint`.
  static Result<Memory>
  reserve(uint64_t bytes, Pages pages = Pages::Small,
          std::string_view hint = "use fewer sequences or compile with a smaller --max-seq");
  Memory() = default;

private:
  using Mapping::Mapping;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_MEMORY_H
