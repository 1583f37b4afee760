//===- PackWeights.cpp - all weights of a module as one stream ------------===//

#include "backends/cpu/pack/PackWeights.h"

#include "backends/cpu/pack/BalancedSource.h"
#include "backends/cpu/pack/Panel.h"
#include "backends/cpu/pack/PartSource.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <atomic>
#include <future>

using namespace mlir;

namespace mica::cpu {

static std::vector<WeightOp> byOffset(ModuleOp module) {
  std::vector<WeightOp> weights(module.getOps<WeightOp>().begin(), module.getOps<WeightOp>().end());
  llvm::sort(weights, [](WeightOp a, WeightOp b) {
    return a.getOffset().value_or(0) < b.getOffset().value_or(0);
  });
  return weights;
}

uint64_t packedBytes(ModuleOp module) {
  uint64_t end = 0;
  for (WeightOp weight : module.getOps<WeightOp>())
    end = std::max<uint64_t>(end, weight.getOffset().value_or(0) + weight.getBytes().value_or(0));
  return end;
}

/// Whether all elements of a tensor are finite, also in type `to`.
static bool isFinite(const SourceTensor &tensor, WeightType to) {
  constexpr int64_t piece = 4096;
  float values[piece];
  uint8_t converted[piece * sizeof(float)];
  StoredAs stored = tensor.stored();
  static_assert(piece % 256 == 0, "whole blocks");
  int64_t count = int64_t(tensor.bytes.size()) * piece / stored.bytesOf(piece);
  for (int64_t i = 0; i < count; i += piece) {
    int64_t size = std::min(piece, count - i);
    readElements(tensor.bytes.data() + stored.bytesOf(i), stored, values, size);
    if (!convertElements(reinterpret_cast<const uint8_t *>(values), WeightType::F32, converted, to,
                         size))
      return false;
  }
  return true;
}

static llvm::Error fail(WeightOp weight, const llvm::Twine &message) {
  return llvm::createStringError("weight \"" + weight.getSymName() + "\" " + message);
}

namespace {

/// Panels of one weight that are packed and written together.
struct Batch {
  int64_t first = 0, count = 0; ///< panels, counted over all matrices
  std::vector<uint8_t> bytes;
  bool finite = true;
};

/// Packs on its own threads while the batch before is being written. Two buffers alternate.
class WeightPacker {
public:
  WeightPacker(WeightOp weight, const PackPlan &plan, const WeightSource &source, unsigned threads)
      : weight(weight), plan(plan), source(source), threads(threads), tails(plan) {
    // Large enough that starting threads does not count and that each has something to do, small
    // enough to stay in the last-level cache.
    constexpr int64_t batchBytes = 4 << 20;
    perBatch = std::max<int64_t>(2 * int64_t(threads), batchBytes / plan.panelBytes(0));
  }

  llvm::Error run(llvm::function_ref<llvm::Error(ArrayRef<uint8_t>)> sink) {
    int64_t panels = plan.matrices * plan.panelsPerMatrix();
    std::future<void> packing;
    auto start = [&](int64_t first, Batch &batch) {
      batch.first = first;
      batch.count = std::min(perBatch, panels - first);
      // A single batch gains nothing from a thread.
      auto policy = panels <= perBatch ? std::launch::deferred : std::launch::async;
      packing = std::async(policy, [this, &batch] { pack(batch); });
    };
    start(0, batches[0]);
    for (int64_t first = 0, index = 0; first < panels; first += perBatch, index ^= 1) {
      packing.get();
      if (first + perBatch < panels)
        start(first + perBatch, batches[index ^ 1]);
      llvm::Error error = batches[index].finite ? sink(batches[index].bytes) : notFinite();
      if (error) {
        if (packing.valid())
          packing.get();
        return error;
      }
    }
    return llvm::Error::success();
  }

private:
  /// Looks once more for what was not finite: packing knows rows, but not whose they are.
  llvm::Error notFinite() const {
    WeightType to = plan.hasIntegers() ? WeightType::F32 : plan.to;
    std::string what = llvm::formatv("holds NaN{0}, check the checkpoint",
                                     to == WeightType::BF16 ? ", infinity or a number beyond bf16"
                                                            : " or infinity");
    for (StringRef name : plan.sources) {
      llvm::Expected<SourceTensor> tensor = source.find(name);
      if (!tensor)
        return tensor.takeError();
      if (!isFinite(*tensor, to)) {
        std::string file = source.fileOf(name);
        return llvm::createStringError(llvm::Twine(file) + (file.empty() ? "" : ": ") +
                                       "tensor \"" + name + "\" " + what);
      }
    }
    return fail(weight, what);
  }

  int64_t panelAt(int64_t index, int64_t &matrix) const {
    matrix = index / plan.panelsPerMatrix();
    return index % plan.panelsPerMatrix() * plan.panelRows();
  }

  bool endsMatrix(int64_t index) const { return (index + 1) % plan.panelsPerMatrix() == 0; }

  void pack(Batch &batch) {
    std::vector<int64_t> offsets(batch.count + 1);
    for (int64_t i = 0, matrix; i < batch.count; ++i)
      offsets[i + 1] = offsets[i] + plan.panelBytes(panelAt(batch.first + i, matrix)) +
                       (endsMatrix(batch.first + i) ? plan.tailBytes() : 0);
    batch.bytes.resize(offsets.back());
    std::atomic<int64_t> next = 0;
    std::atomic<bool> finite = true;
    auto work = [&] {
      for (int64_t i, matrix; (i = next++) < batch.count;) {
        int64_t row = panelAt(batch.first + i, matrix);
        if (!packPanel(plan, matrix, row, batch.bytes.data() + offsets[i], tails))
          finite = false;
      }
    };
    std::vector<std::future<void>> helpers;
    for (unsigned i = 1; i < threads && batch.count > 1; ++i)
      helpers.push_back(std::async(std::launch::async, work));
    work();
    helpers.clear();
    // All panels of a matrix that ends here are packed: the batches before are.
    for (int64_t i = 0, matrix; i < batch.count && plan.tailBytes() > 0; ++i)
      if (panelAt(batch.first + i, matrix), endsMatrix(batch.first + i))
        tails.write(matrix, batch.bytes.data() + offsets[i + 1] - plan.tailBytes());
    batch.finite = finite;
  }

  WeightOp weight;
  const PackPlan &plan;
  const WeightSource &source;
  unsigned threads;
  RowTails tails;
  int64_t perBatch;
  Batch batches[2];
};

/// Writes weight after weight.
class Stream {
public:
  Stream(const WeightSource &source, const PackOptions &options, uint64_t all)
      : source(source), options(options), all(all) {}

  llvm::Error add(WeightOp weight) {
    llvm::Expected<PackPlan> plan = planWeight(weight, source);
    if (!plan)
      return plan.takeError();
    if (!weight.getOffset() || uint64_t(*weight.getOffset()) < position)
      return fail(weight, "has no place of its own in the program");
    if (weight.getBytes() && int64_t(*weight.getBytes()) != plan->bytes())
      return fail(weight, "takes " + llvm::Twine(plan->bytes()) + " bytes, not " +
                              llvm::Twine(*weight.getBytes()));
    if (llvm::Error error = padTo(*weight.getOffset()))
      return error;
    WeightPacker packer(weight, *plan, source, options.threads);
    llvm::Error error = packer.run([&](ArrayRef<uint8_t> bytes) { return write(bytes); });
    for (StringRef name : plan->sources)
      source.release(name);
    return error;
  }

private:
  llvm::Error padTo(uint64_t offset) {
    static constexpr uint8_t zeros[4096] = {};
    while (position < offset)
      if (llvm::Error error =
              write(ArrayRef(zeros, std::min<uint64_t>(sizeof zeros, offset - position))))
        return error;
    return llvm::Error::success();
  }

  llvm::Error write(ArrayRef<uint8_t> bytes) {
    if (llvm::Error error = options.sink(bytes))
      return error;
    position += bytes.size();
    if (options.progress)
      options.progress(position, all);
    return llvm::Error::success();
  }

  const WeightSource &source;
  const PackOptions &options;
  uint64_t position = 0, all;
};

} // namespace

llvm::Error packWeights(ModuleOp module, const WeightSource &source, const PackOptions &options) {
  PartSource parts(source);
  BalancedSource balanced(module, parts, options.threads);
  Stream stream(balanced, options, packedBytes(module));
  for (WeightOp weight : byOffset(module))
    if (llvm::Error error = stream.add(weight))
      return error;
  return llvm::Error::success();
}

} // namespace mica::cpu
