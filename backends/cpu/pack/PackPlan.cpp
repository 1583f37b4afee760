//===- PackPlan.cpp - the sources of a packed weight's rows ---------------===//

#include "backends/cpu/pack/PackPlan.h"

#include "ir/Mica/TensorPart.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mica::cpu {

int64_t PackPlan::panelRows() const {
  if (blocks())
    return kBlockColumns;
  if (layout)
    return layout.getColumns();
  // About the size of a packed panel, so that packing any panel is a similar amount of work.
  constexpr int64_t bytes = 512 << 10;
  return std::clamp<int64_t>(bytes / (columns * int64_t(sizeOf(to))), 1, rows);
}

int64_t PackPlan::panelBytes(int64_t row) const {
  if (blocks())
    return PackedBlocks(*blocks()).bytesOf(columns);
  int64_t element = sizeOf(to);
  if (layout)
    return layout.getColumns() * roundUp(columns, layout.getKBlock()) * element;
  return std::min(panelRows(), rows - row) * columns * element;
}

int64_t PackPlan::bytes() const {
  bool wholePanels = layout || blocks();
  return matrices *
         (wholePanels ? panelsPerMatrix() * panelBytes(0) : rows * columns * int64_t(sizeOf(to)));
}

int64_t PackPlan::paddingBytes() const {
  if (!layout && !blocks())
    return 0;
  int64_t filled = 0;
  for (auto [i, run] : llvm::enumerate(runs))
    if (run.source)
      filled += (i + 1 < runs.size() ? runs[i + 1].begin : matrices * rows) - run.begin;
  int64_t stored = matrices * panelsPerMatrix() * panelRows();
  return bytes() / stored * (stored - filled);
}

SourceRow PackPlan::rowOf(int64_t matrix, int64_t row) const {
  int64_t index = matrix * rows + row;
  auto after = llvm::upper_bound(
      runs, index, [](int64_t value, const SourceRun &run) { return value < run.begin; });
  const SourceRun &run = *std::prev(after);
  if (!run.source)
    return {};
  int64_t offset = index - run.begin;
  return {run.source + offset * run.stored.bytesOf(columns),
          run.rowOffset,
          run.rowFactors ? run.rowFactors[offset] : 1,
          run.columnFactors,
          run.stored,
          run.importance};
}

namespace {

/// Collects the runs of one weight.
class Planner {
public:
  Planner(WeightOp weight, const PartSource &source, int64_t rank)
      : weight(weight), source(source), rank(rank) {}

  llvm::Expected<PackPlan> plan() {
    RankedTensorType type = weight.getTensorType();
    plan_.layout = dyn_cast_or_null<PackedLayoutAttr>(type.getEncoding());
    plan_.element = type.getElementType();
    if (llvm::Error error = setShape(type))
      return error;
    plan_.sources = sourcesOfRank();
    for (Attribute part : plan_.sources)
      if (llvm::Error error = addTensor(part))
        return error;
    if (llvm::Error error = compose())
      return error;
    return std::move(plan_);
  }

private:
  llvm::Error fail(const llvm::Twine &message) {
    return llvm::createStringError("weight \"" + weight.getSymName() + "\" " + message);
  }

  llvm::Error setShape(RankedTensorType type) {
    int64_t rank = type.getRank();
    if (rank < 1 || rank > 3)
      return fail("has " + llvm::Twine(rank) +
                  " dimensions, but only vectors, matrices and stacks of matrices are stored");
    if (plan_.layout && rank == 1)
      return fail("is a vector with the layout of a matrix");
    plan_.columns = rank == 1 ? 1 : type.getShape().back();
    plan_.rows = type.getDimSize(rank == 3 ? 1 : 0);
    plan_.matrices = rank == 3 ? type.getDimSize(0) : 1;
    if (plan_.blocks())
      return llvm::Error::success();
    if (!plan_.element.isF32() && !plan_.element.isBF16())
      return fail("is stored as " + llvm::Twine(plan_.element.isF16() ? "f16" : "an unknown type") +
                  ", but programs hold f32, bf16 and blocks");
    plan_.to = plan_.element.isF32() ? WeightType::F32 : WeightType::BF16;
    if (plan_.layout && plan_.layout.getDepth() * int64_t(sizeOf(plan_.to)) != 4)
      return fail("has a layout whose groups along K are not 4 bytes");
    return llvm::Error::success();
  }

  /// Whether the entries of a stack are distributed over ranks, rather than each partitioned.
  bool distributesEntries() {
    return weight.getShard() && weight.getCompose() == Compose::Stack &&
           weight.getShard()->getAxis() == 0;
  }

  /// The sources that the weight of the rank is composed of.
  llvm::SmallVector<Attribute> sourcesOfRank() {
    llvm::SmallVector<Attribute> sources = weight.getSourceList();
    if (!distributesEntries())
      return sources;
    size_t count = sources.size() / weight.getShard()->getParts();
    return llvm::to_vector(ArrayRef(sources).slice(weight.getShard()->partOf(rank) * count, count));
  }

  /// Entries `first` to `first + count` of `extent` entries of `inner` elements, for each of
  /// `outer`; followed by zeros, or by `padding`, to `size` entries.
  template <typename T>
  static std::vector<T> copyEntries(ArrayRef<T> from, int64_t outer, int64_t extent, int64_t inner,
                                    int64_t first, int64_t count, int64_t size, T padding) {
    std::vector<T> to(outer * size * inner, padding);
    for (int64_t i = 0; i < outer; ++i)
      std::copy_n(from.begin() + (i * extent + first) * inner, count * inner,
                  to.begin() + i * size * inner);
    return to;
  }

  /// Reduces a source to the part that the rank has; see #mica.shard.
  llvm::Error takePart(SourceTensor &tensor, const llvm::Twine &name) {
    std::optional<ShardAttr> shard = weight.getShard();
    if (!shard || distributesEntries())
      return llvm::Error::success();
    int64_t axis = shard->getAxis() - (weight.getCompose() == Compose::Stack),
            numAxes = static_cast<int64_t>(tensor.shape.size());
    if (axis < 0 || axis >= numAxes)
      return fail("is partitioned along axis " + llvm::Twine(axis) + ", which \"" + name +
                  "\" does not have");
    int64_t extent = tensor.shape[axis], size = llvm::divideCeil(extent, shard->getParts()),
            first = std::min(shard->partOf(rank) * size, extent),
            count = std::min(size, extent - first), outer = 1, inner = 1;
    for (auto [i, entries] : llvm::enumerate(tensor.shape))
      (int64_t(i) < axis ? outer : inner) *= int64_t(i) == axis ? 1 : entries;
    bool withinRows = axis == numAxes - 1 && numAxes > 1;
    bool cuts = inner % tensor.blocks.elements() != 0 ||
                int64_t(tensor.bytes.size()) != tensor.stored().bytesOf(outer * extent * inner);
    // No test: blocks are along the last axis, along which the verifier rejects parts of quantized
    // weights, and vectors are not stored in blocks.
    if (cuts)
      return fail("is partitioned along axis " + llvm::Twine(axis) + " of \"" + name +
                  "\", which separates elements of a block");
    int64_t bytes = tensor.stored().bytesOf(inner);
    tensor.shape[axis] = size;
    if (outer == 1 && count == size)
      tensor.bytes = tensor.bytes.slice(first * bytes, count * bytes);
    else
      tensor.bytes = plan_.copies.emplace_back(
          copyEntries<uint8_t>(tensor.bytes, outer, extent, bytes, first, count, size, 0));
    auto take = [&](ArrayRef<float> &factors, int64_t outer, int64_t inner) {
      if (!factors.empty() && int64_t(factors.size()) == outer * extent * inner)
        factors = plan_.factorCopies.emplace_back(
            copyEntries<float>(factors, outer, extent, inner, first, count, size, 1));
    };
    if (withinRows) {
      take(tensor.columnFactors, 1, 1);
      take(tensor.importance, 1, 1);
    } else {
      take(tensor.rowFactors, outer, numAxes > 1 ? inner / tensor.shape.back() : 1);
    }
    return llvm::Error::success();
  }

  struct Tensor {
    int64_t rows;
    SourceTensor source;
  };

  llvm::Error addTensor(Attribute part) {
    llvm::Expected<SourceTensor> tensor = source.find(part);
    if (!tensor)
      return tensor.takeError();
    std::string name = TensorPart::of(part).text();
    if (llvm::Error error = takePart(*tensor, name))
      return error;
    int64_t elements = 1;
    for (int64_t extent : tensor->shape)
      if (extent < 0 || llvm::MulOverflow(elements, extent, elements))
        return fail("is made of \"" + name + "\", whose shape is invalid");
    // A vector may hold several rows, see isStoredAs.
    ArrayRef<int64_t> shape = tensor->shape;
    bool fits = plan_.columns == 1 || (!shape.empty() && shape.back() == plan_.columns) ||
                (shape.size() == 1 && shape.front() % plan_.columns == 0);
    if (!fits || plan_.columns % tensor->blocks.elements() != 0 ||
        tensor->bytes.size() != size_t(tensor->stored().bytesOf(elements)))
      return fail("has rows of " + llvm::Twine(plan_.columns) + " elements, but \"" + name +
                  "\" does not");
    if (llvm::Error error = checkBlocks(name, *tensor))
      return error;
    int64_t rows = elements / plan_.columns;
    auto hasSize = [](ArrayRef<float> factors, int64_t size) {
      return factors.empty() || int64_t(factors.size()) == size;
    };
    if (!hasSize(tensor->rowFactors, rows) || !hasSize(tensor->columnFactors, plan_.columns))
      return fail("is made of \"" + name +
                  "\", which is equalized over a different number of channels");
    tensors.push_back({rows, std::move(*tensor)});
    return llvm::Error::success();
  }

  /// All sources of a weight with preserved blocks must have its block format.
  llvm::Error checkBlocks(StringRef name, const SourceTensor &tensor) {
    const BlockFormat *format = plan_.blocks();
    if (!format || format->isOwn)
      return llvm::Error::success();
    if (tensor.blocks.format != format)
      return fail("preserves " + llvm::Twine(format->name) + " blocks, but \"" + name +
                  "\" is not stored as " + format->name);
    if (!tensor.rowFactors.empty() || !tensor.columnFactors.empty())
      return fail("preserves blocks, but \"" + name + "\" is equalized");
    return llvm::Error::success();
  }

  /// Adds `count` rows of `tensor` beginning at `row`.
  void addRun(int64_t count, const Tensor &tensor, int64_t row = 0) {
    if (count == 0)
      return;
    auto dataOf = [](ArrayRef<float> factors, int64_t offset) {
      return factors.empty() ? nullptr : factors.data() + offset;
    };
    const SourceTensor &source = tensor.source;
    plan_.runs.push_back({next, source.bytes.data() + row * source.stored().bytesOf(plan_.columns),
                          source.rowOffset, dataOf(source.rowFactors, row),
                          dataOf(source.columnFactors, 0), source.stored(),
                          dataOf(source.importance, 0)});
    next += count;
  }

  void addZeros(int64_t count) {
    if (count == 0)
      return;
    plan_.runs.push_back({next, nullptr});
    next += count;
  }

  /// The same for an entry of a stack of matrices; vectors are stacked as one row each.
  int64_t rowsOfEntry() { return weight.getTensorType().getRank() == 2 ? 1 : plan_.rows; }

  llvm::Error compose() {
    std::optional<Compose> how = weight.getCompose();
    if (how == Compose::Interleave || (how == Compose::Stack && weight.getParts() > 1)) {
      size_t parts = how == Compose::Stack ? weight.getParts() : tensors.size();
      for (size_t first = 0; first < tensors.size(); first += parts)
        if (llvm::Error error = interleave(ArrayRef(tensors).slice(first, parts)))
          return error;
    } else {
      for (auto [index, tensor] : llvm::enumerate(tensors)) {
        if (int64_t rows = rowsOfEntry(); how == Compose::Stack && tensor.rows != rows)
          return fail("stacks matrices of " + llvm::Twine(rows) + " rows, but \"" +
                      TensorPart::of(plan_.sources[index]).text() + "\" has " +
                      llvm::Twine(tensor.rows));
        addRun(tensor.rows, tensor);
      }
    }
    int64_t wanted = plan_.matrices * plan_.rows;
    if (next != wanted)
      return fail("has " + llvm::Twine(wanted) + " rows, but its sources have " +
                  llvm::Twine(next));
    return llvm::Error::success();
  }

  /// Interleaves blocks of 64 rows of the sources, each padded to whole blocks.
  llvm::Error interleave(ArrayRef<Tensor> parts) {
    for (const Tensor &part : parts)
      if (part.rows != parts.front().rows)
        return fail("interleaves sources of different numbers of rows");
    for (int64_t row = 0; row < parts.front().rows; row += kBlockColumns)
      for (const Tensor &part : parts) {
        int64_t count = std::min(kBlockColumns, part.rows - row);
        addRun(count, part, row);
        addZeros(kBlockColumns - count);
      }
    return llvm::Error::success();
  }

  WeightOp weight;
  const PartSource &source;
  int64_t rank;
  PackPlan plan_;
  SmallVector<Tensor> tensors;
  int64_t next = 0;
};

} // namespace

llvm::Expected<PackPlan> planWeight(WeightOp weight, const PartSource &source, int64_t rank) {
  return Planner(weight, source, rank).plan();
}

} // namespace mica::cpu
