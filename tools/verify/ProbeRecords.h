//===- ProbeRecords.h - what probes have seen -------------------*- C++ -*-===//
#ifndef MICA_TOOLS_VERIFY_PROBERECORDS_H
#define MICA_TOOLS_VERIFY_PROBERECORDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace mica::tool {

/// The distance of values from reference values.
struct Distance {
  Distance() = default;
  Distance(llvm::ArrayRef<float> values, llvm::ArrayRef<float> reference);
  /// For experts chosen by a gate, `count` per row: both are the share of rows that differ.
  static Distance ofChoices(llvm::ArrayRef<float> values, llvm::ArrayRef<float> reference,
                            size_t count);
  /// Raises both to at least those of `other`.
  void raise(const Distance &other);

  double largest = 0; ///< max |a - b| / max |b|
  double nmse = 0;    ///< sum (a - b)^2 / sum b^2; 1 if any value is not finite
};

/// All recorded rows by the probe's name. A probe in a function that is called once per layer
/// occurs once per layer in each call of the model; rows of later calls are appended.
class ProbeRecords {
public:
  struct Record {
    int64_t layer;
    size_t order; ///< in the order of computation
    std::vector<float> values;
  };

  /// Reads a file of backends/runtime/profile/Probes.h.
  llvm::Error read(llvm::StringRef path);
  void beginCall() { occurrences.clear(); }
  void add(llvm::StringRef name, int64_t layer, llvm::ArrayRef<float> values);

  const Record *find(const std::string &name, size_t occurrence) const;
  size_t size() const { return count; }
  auto begin() const { return records.begin(); }
  auto end() const { return records.end(); }

private:
  std::map<std::string, std::vector<Record>> records;
  std::map<std::string, size_t> occurrences; ///< in this call
  size_t count = 0;
};

} // namespace mica::tool

#endif // MICA_TOOLS_VERIFY_PROBERECORDS_H
