#include "backends/cpu/runtime/Probes.h"

#include <bit>
#include <vector>

namespace mica::rt {

namespace {
ProbeFile *active = nullptr;
constexpr FileKind kind{"what probes see", "file of probes", probeMagic};
} // namespace

ProbeFile *activeProbes() { return active; }

Result<std::unique_ptr<ProbeFile>> ProbeFile::create(const std::string &path) {
  auto file = NewFile::create(path, kind);
  if (!file)
    return file.error();
  std::unique_ptr<ProbeFile> probes(new ProbeFile(*std::move(file)));
  probes->append(probeMagic.data(), probeMagic.size());
  return probes;
}

void ProbeFile::start() { active = this; }

void ProbeFile::append(const void *data, size_t bytes) {
  if (failed)
    failed = file->writeAt(data, bytes, size);
  size += bytes;
}

void ProbeFile::add(std::string_view name, const ProbeHead &head, const void *x, int64_t stride,
                    bool bf16) {
  append(&head, sizeof head);
  append(name.data(), name.size());
  std::vector<float> row(static_cast<size_t>(head.columns));
  for (int64_t r = 0; r < head.rows; ++r) {
    if (bf16) {
      const auto *from = static_cast<const uint16_t *>(x) + r * stride;
      for (size_t i = 0; i < row.size(); ++i)
        row[i] = std::bit_cast<float>(uint32_t(from[i]) << 16);
      append(row.data(), row.size() * sizeof(float));
    } else {
      append(static_cast<const float *>(x) + r * stride, row.size() * sizeof(float));
    }
  }
}

Status ProbeFile::commit() {
  if (active == this)
    active = nullptr;
  return failed ? file->commit() : failed;
}

} // namespace mica::rt
