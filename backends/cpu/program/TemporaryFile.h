// A file that gets its name only when it is complete.
#pragma once

#include "backends/cpu/program/ByteSource.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace mica::program {

/// What a file that is to be written would meet under its name.
enum class Obstacle { None, Directory, NoRegularFile, ForeignFile };

/// Only files that are empty, or `isOurs` of the kind that will be written, may be replaced: a path
/// that was mistyped costs nobody their model.
Obstacle obstacleAt(const std::string &target,
                    const std::function<bool(const FileSource &)> &isOurs);

/// Whether `path` names something of /dev or /proc: whoever writes there wants the device, and a
/// file that takes its name would hide it.
bool namesDevice(std::string_view path);

/// Stands beside its target until `rename`. Destroyed before that, or when a signal ends the
/// process (see SignalCleanup.h), it leaves nothing behind. What fails leaves its reason in errno.
class TemporaryFile {
public:
  /// Readable and writable; null where it cannot be made, such as beside a device.
  static std::unique_ptr<TemporaryFile> create(std::string target);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;

  int descriptor() const { return fd; }
  bool writeAt(std::span<const std::byte> bytes, uint64_t offset);
  /// Some file systems report a full disk only here.
  bool close();
  /// Gives the file its target's name.
  bool rename();
  bool isRenamed() const { return temporary.empty(); }

private:
  TemporaryFile(std::string target, std::string temporary);

  std::string target, temporary;
  int cleanupSlot;
  int fd = -1;
};

} // namespace mica::program
