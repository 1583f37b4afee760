//===- ProbeRecords.cpp - what probes have seen ---------------------------===//

#include "tools/verify/ProbeRecords.h"

#include "backends/runtime/profile/Probes.h"
#include "tools/verify/ProbeReader.h"

#include <cmath>

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
  Expected<ProbeReader> reader = ProbeReader::open(path, rt::probeMagic, "file of probes");
  if (!reader)
    return reader.takeError();
  while (true) {
    Expected<std::optional<ProbeReader::Record>> record = reader->next();
    if (!record)
      return record.takeError();
    if (!*record)
      return Error::success();
    Expected<std::vector<float>> values = reader->take<float>((*record)->rows, (*record)->columns);
    if (!values)
      return values.takeError();
    if ((*record)->name.empty())
      beginCall();
    else
      add((*record)->name, (*record)->layer, *values);
  }
}

} // namespace mica::tool
