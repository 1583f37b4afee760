//===- EqualizedSource.cpp - tensors scaled by mica.equalize --------------===//

#include "backends/cpu/pack/EqualizedSource.h"

#include "backends/cpu/pack/Elements.h"
#include "ir/Mica/TensorPart.h"
#include "ir/Quantize/Quantize.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace mica::cpu {

static llvm::Error fail(const llvm::Twine &message) {
  return llvm::createStringError("mica.equalize " + message);
}

static void raiseTo(MutableArrayRef<float> largest, ArrayRef<float> values) {
  for (auto [channel, value] : llvm::zip_equal(largest, values))
    channel = std::max(channel, value);
}

/// The largest magnitude per row (entry of the first axis); or, per column (entry of the last
/// axis), the largest ratio of one of its elements to the largest magnitude of its row.
static SmallVector<float> largestMagnitudes(const SourceTensor &tensor, bool ofRows,
                                            llvm::ThreadPoolInterface &pool) {
  int64_t width = ofRows && tensor.shape.size() == 1 ? 1 : tensor.shape.back(),
          rowBytes = tensor.stored().bytesOf(width), rows = int64_t(tensor.bytes.size()) / rowBytes,
          perEntry = ofRows ? rows / tensor.shape.front() : 1,
          entries = ofRows ? tensor.shape.front() : width;
  auto ofPart = [&](int64_t from, int64_t to) {
    SmallVector<float> largest(entries, 0.0f);
    std::vector<float> values(width);
    for (int64_t row = from; row < to; ++row) {
      readElements(tensor.bytes.data() + row * rowBytes, tensor.stored(), values.data(), width);
      if (tensor.rowOffset != 0)
        for (float &value : values)
          value += tensor.rowOffset;
      if (ofRows)
        largest[row / perEntry] = std::max(largest[row / perEntry], largestMagnitude(values));
      else
        raiseToShares(largest, values);
    }
    return largest;
  };
  // Waking a thread takes as long as reading tens of KiB.
  constexpr int64_t partBytes = 1 << 18;
  int64_t parts = std::clamp<int64_t>(rows * rowBytes / partBytes, 1,
                                      std::min<int64_t>(pool.getMaxConcurrency(), rows));
  if (parts == 1)
    return ofPart(0, rows);
  std::vector<SmallVector<float>> all(parts);
  llvm::ThreadPoolTaskGroup tasks(pool);
  for (int64_t part = 0; part < parts; ++part)
    tasks.async([&, part] { all[part] = ofPart(rows * part / parts, rows * (part + 1) / parts); });
  tasks.wait();
  SmallVector<float> largest(entries, 0.0f);
  for (ArrayRef<float> ofOne : all)
    raiseTo(largest, ofOne);
  return largest;
}

/// The maximum over several tensors.
static llvm::Expected<SmallVector<float>> largestMagnitudes(const PartSource &source, EqualizeOp op,
                                                            bool ofRows,
                                                            llvm::ThreadPoolInterface &pool) {
  SmallVector<float> largest;
  for (Attribute part : ofRows ? op.getRows() : op.getColumns()) {
    std::string name = TensorPart::of(part).text();
    llvm::Expected<SourceTensor> tensor = source.find(part);
    if (!tensor)
      return tensor.takeError();
    tensor->rowOffset = ofRows ? rowOffset(op) : 0;
    int64_t elements = std::accumulate(tensor->shape.begin(), tensor->shape.end(), int64_t(1),
                                       std::multiplies<>());
    if (tensor->shape.empty() || elements <= 0 ||
        tensor->shape.back() % tensor->blocks.elements() != 0 ||
        int64_t(tensor->bytes.size()) != tensor->stored().bytesOf(elements))
      return fail("names \"" + name + "\", which has no channels");
    SmallVector<float> own = largestMagnitudes(*tensor, ofRows, pool);
    if (!largest.empty() && own.size() != largest.size())
      return fail("names \"" + name + "\", which has " + llvm::Twine(own.size()) +
                  " channels, not " + llvm::Twine(largest.size()));
    largest.resize(own.size());
    raiseTo(largest, own);
  }
  return largest;
}

llvm::Expected<const EqualizedSource::Factors *> EqualizedSource::factorsOf(EqualizeOp op) const {
  std::unique_ptr<Factors> &factors = known[op];
  if (factors)
    return factors.get();
  llvm::Expected<SmallVector<float>> rows = largestMagnitudes(source, op, /*ofRows=*/true, pool);
  if (!rows)
    return rows.takeError();
  llvm::Expected<SmallVector<float>> columns =
      largestMagnitudes(source, op, /*ofRows=*/false, pool);
  if (!columns)
    return columns.takeError();
  if (rows->size() != columns->size())
    return fail("has " + llvm::Twine(rows->size()) + " channels in rows, but " +
                llvm::Twine(columns->size()) + " in columns");
  factors = std::make_unique<Factors>();
  factors->columns = equalizationFactors(*rows, *columns);
  factors->rows = llvm::map_to_vector(factors->columns, [](float factor) { return 1 / factor; });
  return factors.get();
}

llvm::Expected<SourceTensor> EqualizedSource::find(Attribute part) const {
  llvm::Expected<SourceTensor> tensor = source.find(part);
  auto found = equalizations.find(part);
  if (!tensor || found == equalizations.end())
    return tensor;
  if (EqualizeOp op = found->second.rows) {
    llvm::Expected<const Factors *> factors = factorsOf(op);
    if (!factors)
      return factors.takeError();
    tensor->rowOffset = rowOffset(op);
    tensor->rowFactors = (*factors)->rows;
  }
  if (EqualizeOp op = found->second.columns) {
    llvm::Expected<const Factors *> factors = factorsOf(op);
    if (!factors)
      return factors.takeError();
    tensor->columnFactors = (*factors)->columns;
  }
  return tensor;
}

} // namespace mica::cpu
