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
                    ProbeNumbers numbers) {
  append(&head, sizeof head);
  append(name.data(), name.size());
  std::vector<float> row(static_cast<size_t>(head.columns));
  for (int64_t r = 0; r < head.rows; ++r) {
    size_t first = static_cast<size_t>(r * stride);
    for (size_t i = 0; i < row.size(); ++i)
      switch (numbers) {
      case ProbeNumbers::F32:
        row[i] = static_cast<const float *>(x)[first + i];
        break;
      case ProbeNumbers::BF16:
        row[i] = std::bit_cast<float>(uint32_t(static_cast<const uint16_t *>(x)[first + i]) << 16);
        break;
      case ProbeNumbers::I32:
        row[i] = static_cast<float>(static_cast<const int32_t *>(x)[first + i]);
        break;
      }
    append(row.data(), row.size() * sizeof(float));
  }
}

Status ProbeFile::commit() {
  if (active == this)
    active = nullptr;
  return failed ? file->commit() : failed;
}

} // namespace mica::rt
