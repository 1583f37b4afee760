#include "backends/runtime/profile/Probes.h"

#include <bit>
#include <iterator>
#include <utility>

namespace mica::rt {

namespace {
/// These files are chosen by `mica verify` and `mica compile --calibrate`, not by the user.
constexpr std::string_view kHint = "set TMPDIR to a folder with free space";
constexpr FileKind kProbes{"the probe records", "file of probes", probeMagic, kHint};
constexpr FileKind kColumnSums{"sums of columns", "file of column sums", columnSumsMagic, kHint};

template <typename Number, typename Convert>
void readRow(const void *x, size_t first, std::vector<float> &row, Convert convert) {
  const Number *numbers = static_cast<const Number *>(x) + first;
  for (size_t i = 0; i < row.size(); ++i)
    row[i] = convert(numbers[i]);
}

void readRow(const void *x, size_t first, ProbeNumbers numbers, std::vector<float> &row) {
  switch (numbers) {
  case ProbeNumbers::F32:
    return readRow<float>(x, first, row, [](float number) { return number; });
  case ProbeNumbers::BF16:
    return readRow<uint16_t>(x, first, row, [](uint16_t number) {
      return std::bit_cast<float>(uint32_t(number) << 16);
    });
  case ProbeNumbers::I32:
    return readRow<int32_t>(x, first, row,
                            [](int32_t number) { return static_cast<float>(number); });
  }
}
} // namespace

ProbeListener::~ProbeListener() { stop(); }

void ProbeListener::start(Runtime &runtime) {
  observed = &runtime;
  runtime.setProbes(this);
}

void ProbeListener::stop() {
  if (observed && observed->probes() == this)
    observed->setProbes(nullptr);
  observed = nullptr;
}

void ProbeListener::append(const void *data, size_t bytes) {
  if (failed)
    failed = file->writeAt(data, bytes, size);
  size += bytes;
}

void ProbeListener::add(std::string_view name, int64_t layer, const ProbeRows &seen) {
  begin(name, {static_cast<int64_t>(name.size()), layer, seen.rows, seen.columns});
  std::vector<float> row(static_cast<size_t>(seen.columns));
  for (int64_t r = 0; r < seen.rows; ++r) {
    readRow(seen.x, static_cast<size_t>(r * seen.stride), seen.numbers, row);
    addRow(row);
  }
}

Status ProbeListener::commit() {
  stop();
  finish();
  return failed ? file->commit() : failed;
}

template <typename Listener>
Result<std::unique_ptr<ProbeListener>>
ProbeListener::make(const std::string &path, const FileKind &kind, std::string_view magic) {
  auto file = NewFile::create(path, kind);
  if (!file)
    return file.error();
  std::unique_ptr<ProbeListener> listener(new Listener(*std::move(file)));
  listener->append(magic.data(), magic.size());
  return listener;
}

Result<std::unique_ptr<ProbeListener>> ProbeFile::create(const std::string &path) {
  return make<ProbeFile>(path, kProbes, probeMagic);
}

void ProbeFile::begin(std::string_view name, const ProbeHead &head) {
  append(&head, sizeof head);
  append(name.data(), name.size());
}

void ProbeFile::addRow(const std::vector<float> &row) {
  append(row.data(), row.size() * sizeof(float));
}

Result<std::unique_ptr<ProbeListener>> ColumnSums::create(const std::string &path) {
  return make<ColumnSums>(path, kColumnSums, columnSumsMagic);
}

void ColumnSums::add(std::string_view name, int64_t layer, const ProbeRows &seen) {
  if (seen.numbers == ProbeNumbers::I32) {
    experts.emplace();
    const auto *ids = static_cast<const int32_t *>(seen.x);
    for (int64_t r = 0; r < seen.rows; ++r)
      experts->insert(experts->end(), ids + r * seen.stride, ids + r * seen.stride + seen.columns);
    return;
  }
  if (!experts)
    return ProbeListener::add(name, layer, seen);
  std::vector<int32_t> ids = *std::exchange(experts, std::nullopt);
  if (ids.empty())
    return;
  auto choices = static_cast<int64_t>(ids.size()) / seen.rows;
  int64_t columns = seen.columns / choices;
  std::vector<float> row(static_cast<size_t>(columns));
  for (int64_t i = 0; i < std::ssize(ids); ++i) {
    std::string ofExpert = probeNameOfExpert(name, ids[static_cast<size_t>(i)]);
    begin(ofExpert, {static_cast<int64_t>(ofExpert.size()), layer, 1, columns});
    readRow(seen.x, static_cast<size_t>(i / choices * seen.stride + i % choices * columns),
            seen.numbers, row);
    addRow(row);
  }
}

void ColumnSums::begin(std::string_view name, const ProbeHead &head) {
  current = &all[{head.layer, std::string(name)}];
  current->rows += head.rows;
  current->squares.resize(static_cast<size_t>(head.columns));
}

void ColumnSums::addRow(const std::vector<float> &row) {
  for (size_t i = 0; i < row.size(); ++i)
    current->squares[i] += static_cast<double>(row[i]) * row[i];
}

void ColumnSums::finish() {
  for (const auto &[key, sums] : all) {
    const auto &[layer, name] = key;
    ProbeHead head{static_cast<int64_t>(name.size()), layer, sums.rows,
                   static_cast<int64_t>(sums.squares.size())};
    append(&head, sizeof head);
    append(name.data(), name.size());
    append(sums.squares.data(), sums.squares.size() * sizeof(double));
  }
}

} // namespace mica::rt
