//===- PackWeights.cpp - all weights of a module as one stream ------------===//

#include "backends/cpu/pack/PackWeights.h"

#include "backends/cpu/pack/Elements.h"
#include "backends/cpu/pack/EqualizedSource.h"
#include "backends/cpu/pack/PackPanel.h"
#include "backends/cpu/pack/SlicedSource.h"
#include "ir/Mica/Shard.h"
#include "ir/Mica/TensorPart.h"
#include "ir/Quantize/ScaleRange.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ThreadPool.h"

#include <atomic>

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

namespace {
/// Where a tensor is not finite, and why.
struct NotFinite {
  int64_t element; ///< the first such element, or the first element of its block
  ScaleRange scales = ScaleRange::Finite; ///< of its block
};
} // namespace

/// The first place of a tensor that is not finite in type `to`; nullopt if all elements are finite.
static std::optional<NotFinite> findNotFinite(const SourceTensor &tensor, WeightType to) {
  constexpr int64_t piece = 256;
  float values[piece];
  uint8_t converted[piece * sizeof(float)];
  StoredAs stored = tensor.stored();
  static_assert(piece % kMaxBlockElements == 0, "whole blocks");
  // Blocks may have fewer elements than a piece: each is checked separately.
  int64_t step = tensor.blocks ? tensor.blocks.elements() : piece;
  int64_t count = int64_t(tensor.bytes.size()) * piece / stored.bytesOf(piece);
  for (int64_t i = 0; i < count; i += step) {
    int64_t size = std::min(step, count - i);
    NotFinite found = {i};
    if (tensor.blocks && tensor.scales.empty()) {
      BlockParts parts = {};
      splitBlock(*tensor.blocks.format, tensor.bytes.data() + stored.bytesOf(i), parts);
      found.scales = scaleRangeOf(*tensor.blocks.format, parts);
    }
    readElements(tensor.bytes.data() + stored.bytesOf(i), stored, values, size);
    if (found.scales != ScaleRange::Finite ||
        !convertElements(reinterpret_cast<const uint8_t *>(values), WeightType::F32, converted, to,
                         size))
      return found;
  }
  return std::nullopt;
}

static llvm::Error fail(WeightOp weight, const llvm::Twine &message) {
  return llvm::createStringError("weight \"" + weight.getSymName() + "\" " + message);
}

int64_t panelsPerBatch(int64_t panelBytes, unsigned threads) {
  // Large enough that the cost of dispatching to threads is negligible, small enough to stay in the
  // last-level cache.
  constexpr int64_t usual = 4 << 20;
  int64_t each = std::max<int64_t>(2 * int64_t(threads), usual / panelBytes);
  return std::max<int64_t>(1, std::min(each, kMaxBatchBytes / panelBytes));
}

namespace {

/// Panels of one weight that are packed and written together.
struct Batch {
  int64_t first = 0, count = 0; ///< panels, counted over all matrices
  std::vector<int64_t> offsets; ///< of each panel, and their end
  std::vector<uint8_t> bytes;
  std::atomic<int64_t> next = 0; ///< next panel to be packed
  std::atomic<bool> finite = true;
};

/// Packs on the threads of a pool while the previous batch is being written, in alternating
/// buffers.
class WeightPacker {
public:
  WeightPacker(WeightOp weight, const PackPlan &plan, const PartSource &source,
               llvm::ThreadPoolInterface &pool)
      : weight(weight), plan(plan), source(source),
        perBatch(panelsPerBatch(plan.panelBytes(0), pool.getMaxConcurrency())), pool(pool),
        packing(pool) {}

  llvm::Error run(llvm::function_ref<llvm::Error(ArrayRef<uint8_t>)> sink) {
    int64_t panels = plan.matrices * plan.panelsPerMatrix();
    start(batches[0], 0, panels);
    for (int64_t first = 0, index = 0; first < panels; first += perBatch, index ^= 1) {
      Batch &batch = batches[index];
      packing.wait();
      if (first + perBatch < panels)
        start(batches[index ^ 1], first + perBatch, panels);
      if (llvm::Error error = batch.finite ? sink(batch.bytes) : notFinite()) {
        packing.wait();
        return error;
      }
    }
    return llvm::Error::success();
  }

private:
  /// Finds the source of a value that is not finite, because packing processes rows, not sources.
  llvm::Error notFinite() const {
    WeightType to = plan.blocks() ? WeightType::F32 : plan.to;
    StringRef beyond =
        to == WeightType::BF16 ? ", infinity or a number beyond bf16" : " or infinity";
    auto message = [&](const llvm::Twine &place, ScaleRange scales = ScaleRange::Finite) {
      std::string problem = scales == ScaleRange::Overflow ? "has a scale that overflows"
                                                           : ("holds NaN" + beyond).str();
      return (problem + place + "; check the checkpoint").str();
    };
    for (Attribute part : plan.sources) {
      llvm::Expected<SourceTensor> tensor = source.find(part);
      if (!tensor)
        return tensor.takeError();
      if (std::optional<NotFinite> found = findNotFinite(*tensor, to)) {
        std::string file = source.fileOf(part);
        return llvm::createStringError(
            llvm::Twine(file) + (file.empty() ? "" : ": ") + "tensor \"" +
            TensorPart::of(part).text() + "\" " +
            message(tensor->blocks
                        ? " in block " + llvm::Twine(found->element / tensor->blocks.elements())
                        : llvm::Twine(),
                    found->scales));
      }
    }
    return fail(weight, message({}));
  }

  /// The matrix of a panel, and the panel's first row in that matrix.
  std::pair<int64_t, int64_t> matrixAndRow(int64_t panel) const {
    return {panel / plan.panelsPerMatrix(), panel % plan.panelsPerMatrix() * plan.panelRows()};
  }

  /// Packs the panels of a batch, starting at `first` of `panels`.
  void start(Batch &batch, int64_t first, int64_t panels) {
    batch.first = first;
    batch.count = std::min(perBatch, panels - first);
    batch.offsets.assign(batch.count + 1, 0);
    for (int64_t i = 0; i < batch.count; ++i)
      batch.offsets[i + 1] = batch.offsets[i] + plan.panelBytes(matrixAndRow(first + i).second);
    batch.bytes.resize(batch.offsets.back());
    batch.next = 0;
    batch.finite = true;
    // A single panel does not need threads.
    if (panels == 1)
      return pack(batch);
    for (int64_t i = 0, all = std::min<int64_t>(pool.getMaxConcurrency(), batch.count); i < all;
         ++i)
      packing.async([this, &batch] { pack(batch); });
  }

  /// Packs the next unclaimed part.
  void pack(Batch &batch) {
    for (int64_t i; (i = batch.next++) < batch.count;) {
      auto [matrix, row] = matrixAndRow(batch.first + i);
      if (!packPanel(plan, matrix, row, batch.bytes.data() + batch.offsets[i]))
        batch.finite = false;
    }
  }

  WeightOp weight;
  const PackPlan &plan;
  const PartSource &source;
  int64_t perBatch;
  Batch batches[2];
  llvm::ThreadPoolInterface &pool;
  llvm::ThreadPoolTaskGroup packing; ///< last member: its destructor waits for tasks that use the
                                     ///< others
};

/// Writes all weights in order.
class Stream {
public:
  Stream(const PartSource &source, const PackOptions &options, llvm::ThreadPoolInterface &pool,
         uint64_t all)
      : source(source), options(options), pool(pool), all(all) {}

  llvm::Error add(WeightOp weight, int64_t rank) {
    llvm::Expected<PackPlan> plan = planWeight(weight, source, rank);
    if (!plan)
      return plan.takeError();
    uint64_t begin = rank * options.rankStride;
    if (!weight.getOffset() || begin + uint64_t(*weight.getOffset()) < position)
      return fail(weight, "needs an offset after the end of the previous weight");
    if (weight.getBytes() && int64_t(*weight.getBytes()) != plan->bytes())
      return fail(weight, "expected " + llvm::Twine(*weight.getBytes()) + " bytes at offset " +
                              llvm::Twine(*weight.getOffset()) + ", got " +
                              llvm::Twine(plan->bytes()));
    if (llvm::Error error = padTo(begin + *weight.getOffset()))
      return error;
    if (rank == 0 && options.padding)
      options.padding(weight, plan->paddingBytes());
    WeightPacker packer(weight, *plan, source, pool);
    llvm::Error error = packer.run([&](ArrayRef<uint8_t> bytes) { return write(bytes); });
    for (Attribute part : plan->sources)
      source.release(part);
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

  const PartSource &source;
  const PackOptions &options;
  llvm::ThreadPoolInterface &pool;
  uint64_t position = 0, all;
};

} // namespace

llvm::Error packWeights(ModuleOp module, const WeightSource &source, const PackOptions &options) {
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(std::max(options.threads, 1u)));
  SlicedSource parts(source);
  EqualizedSource balanced(module, parts, pool);
  CalibratedSource calibrated(balanced, options.importance);
  int64_t ranks = getRanks(module);
  Stream stream(calibrated, options, pool, (ranks - 1) * options.rankStride + packedBytes(module));
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (WeightOp weight : byOffset(module))
      if (llvm::Error error = stream.add(weight, rank))
        return error;
  return llvm::Error::success();
}

} // namespace mica::cpu
