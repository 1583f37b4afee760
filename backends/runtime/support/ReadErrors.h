// SIGBUS: pages of a mapped file that cannot be read.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_READERRORS_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_READERRORS_H

#include <cstddef>
#include <span>
#include <string_view>

namespace mica::rt {

inline constexpr std::string_view readErrorMessage =
    "the program file could not be read while running (bad disk, or the file was changed); copy or "
    "compile it again";

/// From now on SIGBUS ends the process with a message, unless a ReadErrorGuard handles it.
/// Temporary files are removed.
void handleReadErrors();

/// While it lives, pages within `bytes`, which are mapped from a file, read as zeros if the file
/// cannot be read. For a process that must not end: what it computed from such pages is wrong. At
/// most one lives at a time.
class ReadErrorGuard {
public:
  explicit ReadErrorGuard(std::span<const std::byte> bytes);
  ~ReadErrorGuard();
  ReadErrorGuard(const ReadErrorGuard &) = delete;
  ReadErrorGuard &operator=(const ReadErrorGuard &) = delete;

  /// Whether a page could not be read.
  bool failed() const;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_READERRORS_H
