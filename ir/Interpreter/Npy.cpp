//===- Npy.cpp - NumPy arrays ---------------------------------------------===//

#include "ir/Interpreter/Npy.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace mlir;
namespace endian = llvm::support::endian;

namespace mica::interp {

static constexpr StringRef kMagic("\x93NUMPY", 6);
static constexpr size_t kMaxHeader = 4096; // a header of rank 8 has some 200 bytes
static constexpr size_t kMaxRank = 8;

/// Bytes of an element; 0 if the type is not supported.
static int64_t elementBytes(StringRef descr) {
  return llvm::StringSwitch<int64_t>(descr)
      .Cases({"<f4", "<i4"}, 4)
      .Cases({"<f2", "<u2"}, 2)
      .Case("<i8", 8)
      .Case("|b1", 1)
      .Default(0);
}

namespace {
/// The header, a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderParser {
public:
  explicit HeaderParser(StringRef text) : rest(text) {}

  llvm::Expected<NpyArray> parse() {
    if (!take("{"))
      return error("no dictionary");
    while (!take("}")) {
      if (llvm::Error failure = parseEntry())
        return failure;
      if (!take(",") && !rest.ltrim().starts_with("}"))
        return error("no comma between two entries");
    }
    if (!rest.trim().empty())
      return error("something after the dictionary");
    if (!hasDescr || !hasOrder || !hasShape)
      return error("descr, fortran_order or shape is missing");
    return std::move(array);
  }

private:
  static llvm::Error error(const Twine &what) {
    return llvm::createStringError("malformed header: " + what);
  }

  bool take(StringRef token) {
    rest = rest.ltrim(" ");
    return rest.consume_front(token);
  }

  std::optional<StringRef> takeString() {
    if (!take("'"))
      return std::nullopt;
    size_t end = rest.find('\'');
    if (end == StringRef::npos)
      return std::nullopt;
    StringRef text = rest.take_front(end);
    rest = rest.drop_front(end + 1);
    return text;
  }

  llvm::Error parseEntry() {
    std::optional<StringRef> key = takeString();
    if (!key || !take(":"))
      return error("an entry is not a key and a value");
    if (*key == "descr" && !hasDescr)
      return parseDescr();
    if (*key == "fortran_order" && !hasOrder)
      return parseOrder();
    if (*key == "shape" && !hasShape)
      return parseShape();
    return error("key '" + *key + "' is unknown or there twice");
  }

  llvm::Error parseDescr() {
    std::optional<StringRef> descr = takeString();
    if (!descr)
      return error("descr is not a string");
    if (elementBytes(*descr) == 0)
      return llvm::createStringError("elements of type '" + *descr +
                                     "' are not supported, save <f4, <f2, <u2, <i4, <i8 or |b1");
    array.descr = descr->str();
    hasDescr = true;
    return llvm::Error::success();
  }

  llvm::Error parseOrder() {
    if (!take("False"))
      return llvm::createStringError(
          "the array is not in row-major order, save numpy.ascontiguousarray of it");
    hasOrder = true;
    return llvm::Error::success();
  }

  llvm::Error parseShape() {
    if (!take("("))
      return error("shape is not a tuple");
    while (!take(")")) {
      int64_t extent;
      rest = rest.ltrim(" ");
      if (rest.consumeInteger(10, extent) || extent < 0)
        return error("a dimension is not a non-negative integer");
      array.shape.push_back(extent);
      if (array.shape.size() > kMaxRank)
        return error("the rank is above " + Twine(kMaxRank));
      if (!take(",") && !rest.ltrim().starts_with(")"))
        return error("no comma between two extents");
    }
    hasShape = true;
    return llvm::Error::success();
  }

  StringRef rest;
  NpyArray array;
  bool hasDescr = false, hasOrder = false, hasShape = false;
};
} // namespace

/// Removes magic, version, length and header from the front of `bytes`; returns the header.
static llvm::Expected<StringRef> takeHeader(StringRef &bytes) {
  if (!bytes.consume_front(kMagic) || bytes.size() < 4)
    return llvm::createStringError("not a .npy file: the magic bytes are missing");
  unsigned major = static_cast<unsigned char>(bytes[0]);
  bytes = bytes.drop_front(2);
  if (major < 1 || major > 3)
    return llvm::createStringError("version " + Twine(major) + " of the format is unknown");
  size_t lengthBytes = major == 1 ? 2 : 4;
  if (bytes.size() < lengthBytes)
    return llvm::createStringError("the header is cut off");
  size_t length = major == 1 ? endian::read16le(bytes.data()) : endian::read32le(bytes.data());
  bytes = bytes.drop_front(lengthBytes);
  if (length > bytes.size() || length > kMaxHeader)
    return llvm::createStringError("the header declares " + Twine(length) + " bytes, but " +
                                   Twine(bytes.size()) + " remain (limit " + Twine(kMaxHeader) +
                                   ")");
  StringRef header = bytes.take_front(length);
  bytes = bytes.drop_front(length);
  return header;
}

llvm::Expected<NpyArray> parseNpy(StringRef bytes) {
  llvm::Expected<StringRef> header = takeHeader(bytes);
  if (!header)
    return header.takeError();
  llvm::Expected<NpyArray> array = HeaderParser(header->rtrim(" \n")).parse();
  if (!array)
    return array.takeError();
  int64_t wanted = elementBytes(array->descr);
  bool overflows = false;
  for (int64_t extent : array->shape)
    overflows |= llvm::MulOverflow(wanted, extent, wanted);
  if (overflows || wanted != static_cast<int64_t>(bytes.size()))
    return llvm::createStringError("the shape requires " +
                                   (overflows ? Twine("too many") : Twine(wanted)) +
                                   " bytes, but " + Twine(bytes.size()) + " follow the header");
  array->bytes = bytes.str();
  return array;
}

llvm::Expected<NpyArray> readNpy(StringRef path) {
  auto buffer =
      llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return llvm::createStringError(path + ": " + buffer.getError().message());
  llvm::Expected<NpyArray> array = parseNpy((*buffer)->getBuffer());
  if (!array)
    return llvm::createStringError(path + ": " + llvm::toString(array.takeError()));
  return array;
}

std::string formatNpy(const NpyArray &array) {
  std::string dictionary = "{'descr': '" + array.descr + "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : array.shape)
    dictionary += std::to_string(extent) + ", ";
  dictionary += "), }";
  // The format requires that the data is aligned to 64 bytes and the header ends with a newline.
  size_t before = kMagic.size() + 4;
  dictionary.resize(llvm::alignTo(before + dictionary.size() + 1, 64) - before - 1, ' ');
  dictionary += '\n';
  std::string result = kMagic.str() + std::string("\x01\x00", 2);
  char length[2];
  endian::write16le(length, dictionary.size());
  result.append(length, 2);
  return result + dictionary + array.bytes;
}

/// Element `index` of an integer or boolean array.
static int64_t integerAt(const NpyArray &array, size_t index) {
  const char *data = array.bytes.data();
  if (array.descr == "<i4")
    return static_cast<int32_t>(endian::read32le(data + 4 * index));
  if (array.descr == "<i8")
    return static_cast<int64_t>(endian::read64le(data + 8 * index));
  return data[index] != 0;
}

/// Element `index` of an array of floats; <u2 holds the bits of a bf16.
static float floatAt(const NpyArray &array, size_t index) {
  const char *data = array.bytes.data();
  if (array.descr == "<f4")
    return llvm::bit_cast<float>(endian::read32le(data + 4 * index));
  uint32_t bits = endian::read16le(data + 2 * index);
  if (array.descr == "<u2")
    return llvm::bit_cast<float>(bits << 16);
  llvm::APFloat half(llvm::APFloat::IEEEhalf(), llvm::APInt(16, bits));
  return half.convertToFloat();
}

static llvm::Error cannotConvert(const NpyArray &array, Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return llvm::createStringError("an array of '" + array.descr +
                                 "' cannot be used as a tensor of " + name);
}

static llvm::Expected<Tensor> toFloats(const NpyArray &array, Type type) {
  StringRef descr = array.descr;
  bool fits =
      descr == "<f4" || (descr == "<f2" && type.isF16()) || (descr == "<u2" && type.isBF16());
  if (!fits)
    return cannotConvert(array, type);
  Tensor result = Tensor::zeros(type, array.shape);
  for (auto [i, element] : llvm::enumerate(result.floats))
    element = roundTo(type, floatAt(array, i));
  result.roundRows();
  return result;
}

llvm::Expected<Tensor> toTensor(const NpyArray &array, Type type) {
  if (isa<FloatType>(type) || isQuantized(type))
    return toFloats(array, type);
  if (array.descr[1] == 'f' || array.descr == "<u2" || !type.isIntOrIndex())
    return cannotConvert(array, type);
  Tensor result = Tensor::zeros(type, array.shape);
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  for (auto [i, element] : llvm::enumerate(result.ints)) {
    element = integerAt(array, i);
    if (width == 1 ? (element != 0 && element != 1) : !llvm::isIntN(width, element))
      return llvm::createStringError("element " + Twine(i) + " is " + Twine(element) +
                                     ", which does not fit " + Twine(width) + " bits");
  }
  return result;
}

NpyArray toNpy(const Tensor &tensor) {
  NpyArray result{"", tensor.shape, {}};
  if (tensor.isFloat()) {
    result.descr = "<f4";
    result.bytes.resize(4 * tensor.floats.size());
    for (auto [i, value] : llvm::enumerate(tensor.floats))
      endian::write32le(result.bytes.data() + 4 * i, llvm::bit_cast<uint32_t>(value));
    return result;
  }
  bool boolean = tensor.elementType.isInteger(1), narrow = tensor.elementType.isInteger(32);
  result.descr = boolean ? "|b1" : narrow ? "<i4" : "<i8";
  for (int64_t value : tensor.ints) {
    char bytes[8];
    endian::write64le(bytes, value);
    result.bytes.append(bytes, elementBytes(result.descr));
  }
  return result;
}

} // namespace mica::interp
