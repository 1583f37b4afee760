// The benchmarks of mica-benchmarks: tables of functions of mica ops.
#include "tests/bench/KernelBenchmarks.h"

#include "ir/Quantize/BlockFormats.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <deque>

using namespace mica::test;

namespace mica::bench {

int64_t copiesOf(double bytes) {
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(farAboveCaches / bytes)));
}

std::vector<Format> allFormats() {
  std::vector<Format> all(std::begin(kFormats), std::end(kFormats));
  all.insert(all.end(), std::begin(kBlockFormats), std::end(kBlockFormats));
  // File formats that are missing in those tables, computed as in decoding.
  static const std::deque<std::pair<std::string, std::string>> others = [] {
    std::deque<std::pair<std::string, std::string>> names;
    for (const BlockFormat &format : blockFormats()) {
      std::string name(format.name), type = "!mica.block<" + name + ">";
      auto has = [&](const Format &other) { return other.weight == type; };
      if (llvm::none_of(kFormats, has) && llvm::none_of(kBlockFormats, has))
        names.emplace_back(name, type);
    }
    return names;
  }();
  for (const auto &[name, type] : others)
    all.push_back({name.c_str(), kBlockRows[1].argument, kBlockRows[1].rows, type.c_str(),
                   kBlockRows[1].rounded});
  return all;
}

/// Null if weights are not block-quantized.
static const BlockFormat *blocksOf(const Format &format) {
  llvm::StringRef weight = format.weight;
  bool areBlocks = weight.consume_front("!mica.block<") && weight.consume_back(">");
  return areBlocks ? blockFormatNamed(weight) : nullptr;
}

double bitsOf(const Format &format) {
  if (const BlockFormat *blocks = blocksOf(format))
    return blocks->bits();
  return llvm::StringRef(format.weight) == "f32" ? 32 : 16;
}

bool isWhole(const Format &format, int64_t k) {
  const BlockFormat *blocks = blocksOf(format);
  return !blocks || blocks->isOwn || k % blocks->elements == 0;
}

std::string peaksOf(const Format &format) {
  llvm::StringRef rows = format.rows;
  return rows.starts_with("!") ? "int8" : rows.str();
}

std::vector<KernelBenchmark> kernelBenchmarks() {
  std::vector<KernelBenchmark> all;
  for (auto part : {productBenchmarks, rowBenchmarks, attentionBenchmarks, stateBenchmarks})
    for (KernelBenchmark &benchmark : part())
      all.push_back(std::move(benchmark));
  return all;
}

} // namespace mica::bench
