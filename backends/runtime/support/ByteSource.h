// The bytes of a program: a file, or memory in tests and in the fuzzer.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_BYTESOURCE_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_BYTESOURCE_H

#include "backends/runtime/support/Result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace mica::rt {

class ByteSource {
public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  /// Fills `out` from `offset`. Reading past the end is an error.
  virtual Status readAt(uint64_t offset, std::span<std::byte> out) const = 0;
};

class MemorySource final : public ByteSource {
public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes(bytes) {}
  uint64_t size() const override { return bytes.size(); }
  Status readAt(uint64_t offset, std::span<std::byte> out) const override;

private:
  std::span<const std::byte> bytes;
};

/// A regular file, opened read-only. Owns its descriptor.
class FileSource final : public ByteSource {
public:
  static Result<FileSource> open(const std::string &path);
  FileSource(FileSource &&other) noexcept;
  FileSource &operator=(FileSource &&other) noexcept;
  ~FileSource() override;

  uint64_t size() const override { return bytes; }
  Status readAt(uint64_t offset, std::span<std::byte> out) const override;
  int descriptor() const { return fd; }

private:
  FileSource(int fd, uint64_t bytes) : fd(fd), bytes(bytes) {}

  int fd;
  uint64_t bytes;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_BYTESOURCE_H
