//===- ProbeRecords.cpp - what probes have seen -----------------------------===//

#include "tools/mica/ProbeRecords.h"

#include "backends/cpu/runtime/Probes.h"
#include "frontend/support/InputError.h"
#include "frontend/support/MappedFile.h"

#include <cmath>
#include <cstring>

using namespace llvm;

namespace mica::tool {

Distance::Distance(ArrayRef<float> values, ArrayRef<float> reference) {
  double difference = 0, scale = 0, squares = 0, all = 0;
  for (auto [a, b] : zip_equal(values, reference)) {
    double off = static_cast<double>(a) - b;
    difference = std::max(difference, std::abs(off));
    scale = std::max(scale, std::abs(static_cast<double>(b)));
    squares += off * off;
    all += static_cast<double>(b) * b;
  }
  auto share = [](double part, double whole) {
    if (part == 0)
      return 0.0;
    return std::isfinite(part) && std::isfinite(whole) && whole > 0 ? part / whole : 1.0;
  };
  largest = share(difference, scale);
  nmse = share(squares, all);
}

Distance Distance::ofChoices(ArrayRef<float> values, ArrayRef<float> reference, size_t count) {
  size_t rows = values.size() / count, others = 0;
  for (size_t row = 0; row < rows; ++row)
    if (values.slice(row * count, count) != reference.slice(row * count, count))
      ++others;
  Distance distance;
  distance.largest = distance.nmse =
      rows == 0 ? 0 : static_cast<double>(others) / static_cast<double>(rows);
  return distance;
}

void Distance::raise(const Distance &other) {
  largest = std::max(largest, other.largest);
  nmse = std::max(nmse, other.nmse);
}

void ProbeRecords::add(StringRef name, int64_t layer, ArrayRef<float> values) {
  std::vector<Record> &own = records[name.str()];
  size_t occurrence = occurrences[name.str()]++;
  if (occurrence == own.size())
    own.push_back({layer, count++, {}});
  append_range(own[occurrence].values, values);
}

const ProbeRecords::Record *ProbeRecords::find(const std::string &name, size_t occurrence) const {
  auto own = records.find(name);
  return own == records.end() || occurrence >= own->second.size() ? nullptr
                                                                  : &own->second[occurrence];
}

Error ProbeRecords::read(StringRef path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  StringRef rest(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
  auto broken = [&] {
    return inputError(path,
                      "is no complete file of probes (byte " +
                          Twine(file->bytes().size() - rest.size()) + ")",
                      "run the program again");
  };
  if (!rest.consume_front(rt::probeMagic))
    return broken();
  while (!rest.empty()) {
    rt::ProbeHead head;
    if (rest.size() < sizeof head)
      return broken();
    std::memcpy(&head, rest.data(), sizeof head);
    rest = rest.drop_front(sizeof head);
    auto fits = [&](int64_t count, uint64_t bytes) {
      return count >= 0 && static_cast<uint64_t>(count) <= rest.size() / bytes;
    };
    if (!fits(head.nameBytes, 1))
      return broken();
    StringRef name = rest.take_front(static_cast<size_t>(head.nameBytes));
    rest = rest.drop_front(name.size());
    if (!fits(head.rows, 1) || !fits(head.columns, 4) ||
        !fits(head.rows, 4 * std::max<uint64_t>(1, static_cast<uint64_t>(head.columns))))
      return broken();
    std::vector<float> values(static_cast<size_t>(head.rows * head.columns));
    std::memcpy(values.data(), rest.data(), values.size() * sizeof(float));
    rest = rest.drop_front(values.size() * sizeof(float));
    if (name.empty())
      beginCall();
    else
      add(name, head.layer, values);
  }
  return Error::success();
}

} // namespace mica::tool
