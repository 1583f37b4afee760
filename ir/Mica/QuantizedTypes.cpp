//===- QuantizedTypes.cpp - properties of quantized types -----------------===//
//
// Implements QuantizedElementType for all quantized types, except for roundRow, which is in
// RoundToIntegers.cpp. No other code distinguishes these types.
//
//===----------------------------------------------------------------------===//

#include "ir/Mica/Mica.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mica;

#include "ir/Mica/QuantizedTypeInterface.cpp.inc"

bool mica::isQuantized(Type element) { return isa<QuantizedElementType>(element); }

bool mica::isQuantized(Type element, QuantizedUse use) {
  auto quantized = dyn_cast<QuantizedElementType>(element);
  return quantized && quantized.getUse() == use;
}

/// Replaces the last `axes` axes of a tensor by one axis of `bytes` bytes.
static RankedTensorType asBytes(RankedTensorType tensor, size_t axes, int64_t bytes) {
  SmallVector<int64_t> shape(tensor.getShape().drop_back(axes));
  shape.push_back(bytes);
  return RankedTensorType::get(shape, IntegerType::get(tensor.getContext(), 8));
}

//===- !mica.int8 ---------------------------------------------------------===//

QuantizedUse Int8Type::getUse() const { return QuantizedUse::Cache; }
int64_t Int8Type::getBits() const { return 8; }
int64_t Int8Type::getGroupSize() const { return 0; }
std::string Int8Type::getDisplayName() const { return "int8"; }
bool Int8Type::isOfFiles() const { return false; }
Type Int8Type::getMultipliedRowType() const { return {}; }
// Keys and values that are read are views of the cache, not tensors.
RankedTensorType Int8Type::getPhysicalType(RankedTensorType) const { return {}; }

//===- !mica.block --------------------------------------------------------===//

/// <q4_k>
Type BlockType::parse(AsmParser &parser) {
  std::string name;
  if (parser.parseLess())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeywordOrString(&name))
    return {};
  const BlockFormat *format = blockFormatNamed(name);
  if (!format) {
    auto names = llvm::map_range(blockFormats(), [](const BlockFormat &f) { return f.name; });
    parser.emitError(loc) << "'" << name << "' is not a block format, expected one of "
                          << llvm::join(names, ", ");
    return {};
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), format);
}

void BlockType::print(AsmPrinter &printer) const { printer << '<' << getFormat()->name << '>'; }

const BlockFormat *mica::blockFormatOf(Type element) {
  auto blocks = dyn_cast<BlockType>(element);
  return blocks ? blocks.getFormat() : nullptr;
}

int64_t mica::bytesOfMatrix(const BlockFormat &format, int64_t n, int64_t k) {
  return llvm::divideCeil(n, kBlockColumns) * PackedBlocks(format).bytesOf(k);
}

QuantizedUse BlockType::getUse() const { return QuantizedUse::Weights; }
int64_t BlockType::getBits() const { return getFormat()->codeBits(); }
int64_t BlockType::getGroupSize() const { return getFormat()->elements; }
std::string BlockType::getDisplayName() const { return std::string(getFormat()->name); }
bool BlockType::isOfFiles() const { return !getFormat()->isOwn; }

Type BlockType::getMultipliedRowType() const { return integerRowType(getContext(), /*bits=*/16); }

RankedTensorType BlockType::getPhysicalType(RankedTensorType tensor) const {
  int64_t n = tensor.getDimSize(tensor.getRank() - 2), k = tensor.getShape().back();
  return asBytes(tensor, 2, bytesOfMatrix(*getFormat(), n, k));
}

//===- !mica.int_rows -----------------------------------------------------===//

LogicalResult IntRowsType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t bits,
                                  int64_t group) {
  if (bits != 8 && bits != 16)
    return emitError() << "bits must be 8 or 16, got " << bits;
  if (group != IntegerRowLayout::group)
    return emitError() << "group must be " << IntegerRowLayout::group << ", got " << group;
  return success();
}

Type mica::integerRowType(MLIRContext *context, int64_t bits) {
  return IntRowsType::get(context, bits, IntegerRowLayout::group);
}

int64_t mica::integerRowBits(Type rows) {
  auto integers = dyn_cast<IntRowsType>(rows);
  return integers ? integers.getBits() : 0;
}

QuantizedUse IntRowsType::getUse() const { return QuantizedUse::Rows; }
int64_t IntRowsType::getGroupSize() const { return getGroup(); }
bool IntRowsType::isOfFiles() const { return false; }
Type IntRowsType::getMultipliedRowType() const { return {}; }

std::string IntRowsType::getDisplayName() const {
  return "int" + std::to_string(getBits()) + " per " + std::to_string(getGroup());
}

RankedTensorType IntRowsType::getPhysicalType(RankedTensorType tensor) const {
  return asBytes(tensor, 1, IntegerRowLayout(getBits(), tensor.getShape().back()).bytes);
}

//===- What weights take --------------------------------------------------===//

int64_t mica::getStoredBytes(RankedTensorType type) {
  if (auto quantized = dyn_cast<QuantizedElementType>(type.getElementType()))
    return quantized.getPhysicalType(type).getNumElements();
  SmallVector<int64_t> shape(type.getShape());
  if (auto layout = dyn_cast_or_null<PackedLayoutAttr>(type.getEncoding())) {
    shape.back() = roundUp(shape.back(), layout.getKBlock());
    shape[shape.size() - 2] = roundUp(shape[shape.size() - 2], layout.getColumns());
  }
  return ShapedType::getNumElements(shape) * type.getElementTypeBitWidth() / 8;
}
