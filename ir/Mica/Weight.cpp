//===- Weight.cpp - weights as symbols ------------------------------------===//

#include "ir/Mica/Names.h"
#include "ir/Mica/Shard.h"
#include "ir/Mica/Verify.h"

using namespace mlir;
using namespace mica;

RankedTensorType WeightOp::getTensorType() { return cast<RankedTensorType>(getType()); }

SmallVector<Attribute> WeightOp::getSourceList() {
  if (std::optional<ArrayAttr> sources = getSources())
    return llvm::to_vector(*sources);
  return {getSymNameAttr()};
}

/// Rows stored in block formats of files must consist of whole blocks.
static LogicalResult verifyBlocks(WeightOp weight, Type element) {
  auto blocks = dyn_cast<QuantizedElementType>(element);
  RankedTensorType type = weight.getTensorType();
  if (!blocks || !blocks.isOfFiles() ||
      (type.getRank() > 1 && type.getShape().back() % blocks.getGroupSize() == 0))
    return success();
  return weight.emitOpError() << "is stored in blocks of " << blocks.getGroupSize()
                              << " elements, but its rows are not a multiple of that";
}

/// What is partitioned exists, is no block, and is one axis of all sources or the entries of a
/// stack.
static LogicalResult verifyShard(WeightOp weight, ShardAttr shard, int64_t entries) {
  RankedTensorType type = weight.getTensorType();
  int64_t axis = shard.getAxis();
  if (failed(verifyRanks(weight, shard.getRanks())))
    return failure();
  if (axis >= type.getRank())
    return weight.emitOpError() << "is partitioned along axis " << axis << " of " << type.getRank();
  if (isQuantized(type.getElementType()) && axis == type.getRank() - 1)
    return weight.emitOpError("is partitioned along its last axis, that of its blocks");
  std::optional<Compose> compose = weight.getCompose();
  if ((compose == Compose::Concat || compose == Compose::Interleave) && axis != 0)
    return weight.emitOpError() << "is partitioned along axis " << axis
                                << ", but composed along axis 0, the only one possible";
  if (compose == Compose::Stack && axis == 0 && entries % shard.getParts() != 0)
    return weight.emitOpError() << "has " << entries << " entries, not a multiple of the "
                                << shard.getParts() << " parts of its shard";
  return success();
}

LogicalResult WeightOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape() || type.getNumElements() == 0)
    return emitOpError("needs a tensor type of static, non-empty shape");
  Type element = type.getElementType();
  if (isQuantized(element, QuantizedUse::Cache))
    return emitOpError("has elements of type !mica.int8, which is for caches; use "
                       "!mica.block<int8_g32> for weights");
  bool quantized = isQuantized(element, QuantizedUse::Weights);
  if (!element.isF32() && !element.isBF16() && !element.isF16() && !quantized)
    return emitOpError() << "holds f32, bf16, f16 or !mica.block, got " << element;
  if (quantized && type.getRank() < 2)
    return emitOpError("holds blocks along rows, but is a vector: vectors stay f32");
  if (failed(verifyBlocks(*this, element)))
    return failure();
  if (getStored() && !isQuantized(*getStored(), QuantizedUse::Weights))
    return emitOpError() << "says that its sources are stored as " << *getStored()
                         << ", expected !mica.block";
  if (getCompose() && !getSources())
    return emitOpError("requires 'sources' if 'compose' is present");
  int64_t count = getSourceList().size();
  if (count == 0)
    return emitOpError("has an empty list of sources");
  auto isEmpty = [](Attribute source) {
    auto name = dyn_cast<StringAttr>(source);
    return name && name.empty();
  };
  if (llvm::any_of(getSourceList(), isEmpty))
    return emitOpError("has a source without a name");
  if (count > 1 && !getCompose())
    return emitOpError(
        "has several sources and must say how they are composed: concat, stack or interleave");
  int64_t parts = getParts();
  if (parts < 1 || count % parts != 0)
    return emitOpError() << "has " << count << " sources, not a multiple of parts " << getParts();
  int64_t entries = count / parts;
  if (getShard() && failed(verifyShard(*this, *getShard(), entries)))
    return failure();
  if (getShard() && getShard()->getAxis() == 0)
    entries /= getShard()->getParts();
  if (getCompose() == Compose::Stack && type.getDimSize(0) != entries)
    return emitOpError() << "stacks " << entries << " entries into a leading axis of size "
                         << type.getDimSize(0);
  if (getCompose() == Compose::Interleave && type.getDimSize(0) % (kBlockColumns * count) != 0)
    return emitOpError() << "interleaves blocks of " << kBlockColumns << " rows of " << count
                         << " sources, but has " << type.getDimSize(0) << " rows";
  return success();
}

static LogicalResult verifyWeightSymbol(Operation *op, FlatSymbolRefAttr name, Type type,
                                        SymbolTableCollection &symbols) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(op, name);
  if (!weight)
    return op->emitOpError() << "refers to " << name << ", which is not a mica.weight";
  if (weight.getTensorType() != type)
    return op->emitOpError() << "has type " << type << ", but " << name << " is "
                             << weight.getTensorType();
  return success();
}

LogicalResult GetWeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyWeightSymbol(*this, getWeightAttr(), getResult().getType(), symbols);
}

LogicalResult SelectWeightOp::verify() {
  if (getWeights().empty())
    return emitOpError("selects from an empty list of weights");
  return success();
}

LogicalResult SelectWeightOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (auto name : getWeights().getAsRange<FlatSymbolRefAttr>())
    if (failed(verifyWeightSymbol(*this, name, getResult().getType(), symbols)))
      return failure();
  return success();
}

LogicalResult IndexTableOp::verify() {
  if (getNumbers().empty())
    return emitOpError("selects from an empty list of numbers");
  return success();
}

/// The range of the entries that the index can select.
void IndexTableOp::inferResultRanges(ArrayRef<ConstantIntRanges> operands, SetIntRangeFn setRange) {
  ArrayRef<int64_t> numbers = getNumbers();
  int64_t first = std::max<int64_t>(operands[0].smin().getSExtValue(), 0),
          last = std::min<int64_t>(operands[0].smax().getSExtValue(), numbers.size() - 1);
  if (first <= last)
    numbers = numbers.slice(first, last - first + 1);
  auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
  unsigned width = ConstantIntRanges::getStorageBitwidth(getType());
  setRange(getResult(), ConstantIntRanges::fromSigned(APInt(width, *low, /*isSigned=*/true),
                                                      APInt(width, *high, /*isSigned=*/true)));
}

void GetWeightOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), shortName(getWeight()));
}
