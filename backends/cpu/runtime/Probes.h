// What the probes of a model see as it runs, written down.
#pragma once

#include "backends/cpu/runtime/NewFile.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mica::rt {

/// The first bytes of a file of probes.
inline constexpr std::string_view probeMagic = "mica probes 1\n";

/// Rows that a probe has seen in one call of the model, or, with no name and no rows, the beginning
/// of a call. In the file, behind the magic, each begins with these numbers, words of 8 bytes in
/// the order of the machine; then come the bytes of the probe's name and rows * columns numbers of
/// 32 bits.
struct ProbeHead {
  int64_t nameBytes, layer, rows, columns;
};

/// What a program has the numbers of a probe in. A file has them in f32, which numbers of experts
/// are as well.
enum class ProbeNumbers : int32_t { F32 = 0, BF16 = 1, I32 = 2 };

/// A file of all that probes see, in the order in which the model computes. It appears under its
/// name at `commit`.
class ProbeFile {
public:
  static Result<std::unique_ptr<ProbeFile>> create(const std::string &path);

  /// From now on probes write here.
  void start();
  void beginCall() { add({}, {0, -1, 0, 0}, nullptr, 0, ProbeNumbers::F32); }
  /// Rows are `stride` numbers apart.
  void add(std::string_view name, const ProbeHead &head, const void *x, int64_t stride,
           ProbeNumbers numbers);
  /// Errors: what could not be written since the start.
  Status commit();

private:
  explicit ProbeFile(std::unique_ptr<NewFile> file) : file(std::move(file)) {}
  void append(const void *data, size_t size);

  std::unique_ptr<NewFile> file;
  uint64_t size = 0;
  Status failed;
};

/// The file that probes write to; null: none.
ProbeFile *activeProbes();

} // namespace mica::rt
