//===- WeightLoader.cpp - weights composed from checkpoint tensors --------===//

#include "ir/Interpreter/WeightLoader.h"
#include "ir/Interpreter/Blocks.h"
#include "ir/Interpreter/OpTable.h"
#include "ir/Mica/Shard.h"
#include "ir/Mica/TensorPart.h"
#include "ir/Quantize/Quantize.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mica::interp {

/// Concatenates sources along the first axis.
static Tensor concatenated(ArrayRef<Tensor> sources) {
  Tensor result = sources.front();
  for (const Tensor &source : sources.drop_front()) {
    result.shape[0] += source.shape[0];
    llvm::append_range(result.floats, source.floats);
  }
  return result;
}

/// Interleaves sources in blocks of 64 rows, each source padded with zero rows to whole blocks.
static Tensor interleaved(ArrayRef<Tensor> sources) {
  const Tensor &first = sources.front();
  int64_t rows = first.shape[0], width = first.rowSize(), parts = sources.size();
  SmallVector<int64_t> shape(first.shape);
  shape[0] = roundUp(rows, kBlockColumns) * parts;
  Tensor result = Tensor::zeros(first.elementType, shape);
  for (auto [part, source] : llvm::enumerate(sources))
    for (int64_t i = 0; i < rows; ++i)
      llvm::copy(source.row(i), result.floats.begin() + interleavedIndex(i, part, parts) * width);
  return result;
}

/// Stacks sources, or interleaved groups of `parts` of them, along a new first axis.
static Tensor stacked(ArrayRef<Tensor> sources, int64_t parts) {
  SmallVector<Tensor> entries;
  for (; !sources.empty(); sources = sources.drop_front(parts))
    entries.push_back(parts == 1 ? sources.front() : interleaved(sources.take_front(parts)));
  for (Tensor &entry : entries)
    entry.shape.insert(entry.shape.begin(), 1);
  return concatenated(entries);
}

static Tensor composed(WeightOp op, ArrayRef<Tensor> sources) {
  if (!op.getCompose())
    return sources.front();
  switch (*op.getCompose()) {
  case Compose::Concat:
    return concatenated(sources);
  case Compose::Stack:
    return stacked(sources, op.getParts());
  case Compose::Interleave:
    return interleaved(sources);
  }
  llvm_unreachable("a composition without a formula");
}

/// All axes of the sources must agree, except that the first one may differ if they are
/// concatenated.
static llvm::Error checkSources(WeightOp op, ArrayRef<Tensor> sources) {
  bool concats = op.getCompose() == Compose::Concat;
  for (auto [named, source] : llvm::zip_equal(op.getSourceList(), sources)) {
    std::string name = TensorPart::of(named).text();
    if (!source.isFloat() || source.shape.empty())
      return opError(op, "@" + op.getSymName() + ": source '" + name +
                             "' is not a tensor of floats of rank 1 or more");
    if (llvm::is_contained(source.shape, 0))
      return opError(op, "@" + op.getSymName() + ": source '" + name + "' has no elements");
    ArrayRef<int64_t> shape = source.shape, first = sources.front().shape;
    if (shape.drop_front(concats) != first.drop_front(concats))
      return opError(op, "@" + op.getSymName() + ": source '" + name +
                             "' differs in shape from the first one");
  }
  return llvm::Error::success();
}

static llvm::Expected<Tensor> partOf(const Tensor &whole, const TensorPart &part) {
  if (part.isWhole())
    return whole;
  std::optional<SmallVector<int64_t>> shape = part.shapeIn(whole.shape);
  if (!shape)
    return llvm::createStringError("'" + part.text() + "' is not part of the tensor");
  Tensor result = Tensor::zeros(whole.elementType, *shape);
  int64_t rows = shape->front(), width = result.rowSize();
  if (part.asColumns)
    std::swap(rows, width);
  int64_t begin = part.entry ? *part.entry * whole.rowSize() : 0;
  int64_t down = part.transposed ? 1 : width, right = part.transposed ? whole.shape.back() : 1;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j)
      result.floats[part.asColumns ? j * rows + i : i * width + j] =
          whole.floats[begin + part.rowOf(i) * down + j * right];
  return result;
}

WeightLoader::WeightLoader(ModuleOp module, WeightProvider weights)
    : weights(std::move(weights)), equalizations(findEqualization(module)),
      loaded(mica::getRanks(module)) {}

llvm::Expected<Tensor> WeightLoader::unbalanced(Attribute source) {
  TensorPart part = TensorPart::of(source);
  llvm::Expected<Tensor> tensor = weights(part.tensor);
  if (!tensor || !tensor->isFloat())
    return tensor;
  return partOf(*tensor, part);
}

/// The largest magnitude of each row (entry of the first axis); or, for each column (of the last
/// axis), the largest ratio of one of its elements to the largest magnitude of the element's row.
static SmallVector<float> largestMagnitudes(const Tensor &x, bool ofRows) {
  int64_t width = ofRows ? x.rowSize() : x.shape.back();
  SmallVector<float> largest(ofRows ? x.shape.front() : width, 0.0f);
  for (int64_t begin = 0, row = 0; begin < int64_t(x.floats.size()); begin += width, ++row) {
    ArrayRef<float> values = ArrayRef(x.floats).slice(begin, width);
    if (ofRows)
      largest[row] = largestMagnitude(values);
    else
      raiseToShares(largest, values);
  }
  return largest;
}

/// The largest magnitudes over several tensors, by channel.
llvm::Expected<SmallVector<float>> WeightLoader::magnitudes(EqualizeOp op, bool ofRows) {
  SmallVector<float> largest;
  for (Attribute source : ofRows ? op.getRows() : op.getColumns()) {
    std::string name = TensorPart::of(source).text();
    llvm::Expected<Tensor> tensor = unbalanced(source);
    if (!tensor)
      return opError(op, llvm::toString(tensor.takeError()));
    if (!tensor->isFloat() || tensor->shape.empty())
      return opError(op, "'" + name + "' is not a tensor of floats of rank 1 or more");
    if (ofRows)
      for (float &value : tensor->floats)
        value += rowOffset(op);
    SmallVector<float> own = largestMagnitudes(*tensor, ofRows);
    if (!largest.empty() && own.size() != largest.size())
      return opError(op, "'" + name + "' has " + Twine(own.size()) +
                             " channels, the ones before have " + Twine(largest.size()));
    largest.resize(own.size());
    for (auto [channel, value] : llvm::zip_equal(largest, own))
      channel = std::max(channel, value);
  }
  return largest;
}

llvm::Expected<Tensor> WeightLoader::source(Attribute source) {
  llvm::Expected<Tensor> tensor = unbalanced(source);
  auto found = equalizations.find(source);
  if (!tensor || found == equalizations.end())
    return tensor;
  for (bool ofRows : {true, false}) {
    EqualizeOp op = ofRows ? found->second.rows : found->second.columns;
    if (!op)
      continue;
    llvm::Expected<SmallVector<float>> factors = this->factors(op);
    if (!factors)
      return factors.takeError();
    for (auto [i, value] : llvm::enumerate(tensor->floats))
      value = ofRows ? (value + rowOffset(op)) / (*factors)[i / tensor->rowSize()]
                     : value * (*factors)[i % tensor->shape.back()];
  }
  return tensor;
}

llvm::Expected<SmallVector<float>> WeightLoader::factors(EqualizeOp op) {
  llvm::Expected<SmallVector<float>> rows = magnitudes(op, /*ofRows=*/true);
  if (!rows)
    return rows.takeError();
  llvm::Expected<SmallVector<float>> columns = magnitudes(op, /*ofRows=*/false);
  if (!columns)
    return columns.takeError();
  if (rows->size() != columns->size())
    return opError(op, "has " + Twine(rows->size()) + " channels in rows, but " +
                           Twine(columns->size()) + " in columns");
  return equalizationFactors(*rows, *columns);
}

/// The sources that the weight of a rank is composed of: parts of all, or some of the entries.
static llvm::Error partitionSources(WeightOp op, int64_t rank, SmallVectorImpl<Tensor> &sources) {
  std::optional<ShardAttr> shard = op.getShard();
  if (!shard)
    return llvm::Error::success();
  int64_t part = shard->partOf(rank), parts = shard->getParts(), axis = shard->getAxis();
  if (op.getCompose() == Compose::Stack && axis == 0) {
    auto count = static_cast<int64_t>(sources.size()) / parts;
    sources = llvm::to_vector(ArrayRef(sources).slice(part * count, count));
    return llvm::Error::success();
  }
  axis -= op.getCompose() == Compose::Stack;
  for (Tensor &source : sources) {
    if (axis >= static_cast<int64_t>(source.shape.size()))
      return opError(op, "@" + op.getSymName() + ": a source with " + Twine(source.shape.size()) +
                             " axes has no axis " + Twine(axis));
    source = source.part(axis, part, parts);
  }
  return llvm::Error::success();
}

llvm::Expected<Value> WeightLoader::load(WeightOp op, int64_t rank) {
  if (auto it = loaded[rank].find(op.getSymName()); it != loaded[rank].end())
    return it->second;
  if (!weights)
    return opError(op, "@" + op.getSymName() + " is needed, but no weights were given");
  SmallVector<Tensor> sources;
  for (Attribute named : op.getSourceList()) {
    llvm::Expected<Tensor> source = this->source(named);
    if (!source)
      return opError(op, "@" + op.getSymName() + ": " + llvm::toString(source.takeError()));
    sources.push_back(std::move(*source));
  }
  if (llvm::Error error = checkSources(op, sources))
    return error;
  if (llvm::Error error = partitionSources(op, rank, sources))
    return error;
  Tensor result = composed(op, sources);
  result.elementType = op.getTensorType().getElementType();
  if (isStoredAs(result.shape, op.getTensorType().getShape()))
    result.shape.assign(op.getTensorType().getShape());
  // Block formats of files represent the values of their sources exactly.
  auto quantized = dyn_cast<QuantizedElementType>(result.elementType);
  if (!quantized || !quantized.isOfFiles()) {
    for (float &element : result.floats)
      element = roundTo(result.elementType, element);
    result.roundRows();
  }
  Value value(std::move(result));
  if (llvm::Error error = value.checkFits(op.getTensorType()))
    return opError(op, "@" + op.getSymName() + ": " + llvm::toString(std::move(error)));
  return loaded[rank][op.getSymName()] = value;
}

} // namespace mica::interp
