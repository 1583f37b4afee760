#include "frontend/formats/gguf/GgufFile.h"

#include "frontend/support/InputError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

namespace mica {
namespace {

constexpr llvm::StringLiteral magic = "GGUF";
constexpr uint64_t maxKeys = 1 << 16, maxTensors = 1 << 20, maxRank = 4, maxNameBytes = 1 << 10;
constexpr unsigned maxArrayDepth = 4;
constexpr uint64_t maxAlignment = 1 << 16;
constexpr GgufKind lastKind = GgufKind::F64;

/// The size of a value in bytes; 0 for strings and arrays.
uint64_t sizeOf(GgufKind kind) {
  constexpr uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return sizes[static_cast<uint32_t>(kind)];
}

/// The unread bytes of the file. A read beyond the end fails, and so do all reads
/// after it.
class Cursor {
public:
  explicit Cursor(llvm::ArrayRef<uint8_t> bytes) : all(bytes) {}

  uint64_t place() const { return position; }
  uint64_t left() const { return all.size() - position; }
  bool failed() const { return broken; }

  llvm::ArrayRef<uint8_t> bytes(uint64_t count) {
    if (broken || count > left()) {
      broken = true;
      return {};
    }
    llvm::ArrayRef<uint8_t> part = all.slice(position, count);
    position += count;
    return part;
  }
  void skip(uint64_t count) { static_cast<void>(bytes(count)); }
  template <typename T> T number() {
    llvm::ArrayRef<uint8_t> part = bytes(sizeof(T));
    return part.empty() ? T(0)
                        : llvm::support::endian::read<T, llvm::endianness::little>(part.data());
  }
  /// A string: its length and its characters.
  llvm::StringRef string() { return llvm::toStringRef(bytes(number<uint64_t>())); }

private:
  llvm::ArrayRef<uint8_t> all;
  uint64_t position = 0;
  bool broken = false;
};

class HeaderReader {
public:
  HeaderReader(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef path)
      : cursor(bytes), size(bytes.size()), path(path) {}

  llvm::Expected<GgufHeader> read();

private:
  llvm::Error wrong(const llvm::Twine &what) const { return inputError(path, what, hints::fetch); }
  llvm::Error endsIn(const llvm::Twine &what) const {
    return wrong("ends in " + what + " (" + llvm::Twine(size) + " bytes), it is truncated");
  }
  llvm::Error readVersion();
  llvm::Error readMetadata(uint64_t count);
  llvm::Expected<GgufValue> readValue(llvm::StringRef key);
  llvm::Expected<GgufValue> readArray(llvm::StringRef key, unsigned depth);
  llvm::Expected<GgufKind> readKind(llvm::StringRef key);
  llvm::Error readAlignment();
  llvm::Error readTensors(uint64_t count);
  llvm::Expected<GgufTensor> readTensor(uint64_t index);
  llvm::Error readShape(GgufTensor &tensor);
  llvm::Error setSize(GgufTensor &tensor) const;
  llvm::Error place();
  std::string named(const GgufTensor &tensor) const { return "tensor " + inQuotes(tensor.name); }

  Cursor cursor;
  uint64_t size, alignment = 32;
  llvm::StringRef path;
  GgufHeader header;
};

llvm::Error HeaderReader::readVersion() {
  if (llvm::toStringRef(cursor.bytes(magic.size())) != magic)
    return wrong("is not a GGUF file");
  header.version = cursor.number<uint32_t>();
  if (cursor.failed())
    return endsIn("its version");
  uint32_t swapped = llvm::byteswap(header.version);
  if (swapped == 2 || swapped == 3)
    return inputError(path,
                      "is a big-endian GGUF file of version " + llvm::Twine(swapped) +
                          ", only little-endian ones are supported",
                      "convert it to little-endian");
  if (header.version != 2 && header.version != 3)
    return inputError(path,
                      "has the GGUF version " + llvm::Twine(header.version) +
                          ", only 2 and 3 are supported",
                      "convert it to one of them");
  return llvm::Error::success();
}

llvm::Expected<GgufKind> HeaderReader::readKind(llvm::StringRef key) {
  uint64_t where = cursor.place();
  auto number = cursor.number<uint32_t>();
  if (cursor.failed())
    return endsIn("the key " + inQuotes(key));
  if (number > static_cast<uint32_t>(lastKind))
    return wrong("has the kind " + llvm::Twine(number) + " for the key " + inQuotes(key) +
                 " (byte " + llvm::Twine(where) + "), which is unknown");
  return static_cast<GgufKind>(number);
}

/// Checks all elements, so that later accesses to the array stay within it.
llvm::Expected<GgufValue> HeaderReader::readArray(llvm::StringRef key, unsigned depth) {
  uint64_t where = cursor.place();
  auto kind = readKind(key);
  if (!kind)
    return kind.takeError();
  auto count = cursor.number<uint64_t>();
  // The minimum size of an element: the length of a string, type and count of an array.
  uint64_t minBytes = *kind == GgufKind::String  ? sizeof(uint64_t)
                      : *kind == GgufKind::Array ? sizeof(uint32_t) + sizeof(uint64_t)
                                                 : sizeOf(*kind);
  if (cursor.failed() || count > cursor.left() / minBytes)
    return wrong("declares " + llvm::Twine(count) + " elements for the key " + inQuotes(key) +
                 " (byte " + llvm::Twine(where) + "), but " + llvm::Twine(cursor.left()) +
                 " bytes follow");
  Cursor begin = cursor;
  if (*kind == GgufKind::Array && depth == maxArrayDepth)
    return wrong("nests arrays deeper than " + llvm::Twine(maxArrayDepth) + " in the key " +
                 inQuotes(key));
  if (uint64_t width = sizeOf(*kind))
    cursor.skip(count * width);
  for (uint64_t i = 0; i < count && *kind == GgufKind::String && !cursor.failed(); ++i)
    cursor.string();
  for (uint64_t i = 0; i < count && *kind == GgufKind::Array; ++i)
    if (auto inner = readArray(key, depth + 1); !inner)
      return inner.takeError();
  if (cursor.failed())
    return endsIn("an array of the key " + inQuotes(key));
  return GgufValue(*kind, count, begin.bytes(cursor.place() - begin.place()));
}

llvm::Expected<GgufValue> HeaderReader::readValue(llvm::StringRef key) {
  auto kind = readKind(key);
  if (!kind)
    return kind.takeError();
  if (*kind == GgufKind::Array)
    return readArray(key, 1);
  uint64_t width = *kind == GgufKind::String ? cursor.number<uint64_t>() : sizeOf(*kind);
  llvm::ArrayRef<uint8_t> bytes = cursor.bytes(width);
  if (cursor.failed())
    return wrong("has a value of " + llvm::Twine(width) + " bytes for the key " + inQuotes(key) +
                 ", but " + llvm::Twine(cursor.left()) + " follow");
  if (*kind == GgufKind::Bool && bytes[0] > 1)
    return wrong("has a boolean value of " + llvm::Twine(unsigned(bytes[0])) + " for the key " +
                 inQuotes(key));
  return GgufValue(*kind, bytes);
}

llvm::Error HeaderReader::readMetadata(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    llvm::StringRef key = cursor.string();
    if (cursor.failed())
      return endsIn("the name of key " + llvm::Twine(i) + " of " + llvm::Twine(count));
    if (key.empty() || key.size() > maxNameBytes)
      return wrong("has a key whose name has " + llvm::Twine(key.size()) + " bytes (key " +
                   llvm::Twine(i) + ")");
    auto value = readValue(key);
    if (!value)
      return value.takeError();
    if (!header.metadata.try_emplace(key, *value).second)
      return wrong("has the key " + inQuotes(key) + " twice");
  }
  return llvm::Error::success();
}

llvm::Error HeaderReader::readAlignment() {
  auto entry = header.metadata.find("general.alignment");
  if (entry == header.metadata.end())
    return llvm::Error::success();
  auto given = entry->second.integer();
  if (!given || *given < 1 || *given > int64_t(maxAlignment) || !llvm::isPowerOf2_64(*given))
    return wrong("has \"general.alignment\": " + entry->second.shown() +
                 ", expected a power of two up to " + llvm::Twine(maxAlignment));
  alignment = *given;
  return llvm::Error::success();
}

/// In the file, the fastest dimension comes first.
llvm::Error HeaderReader::readShape(GgufTensor &tensor) {
  auto rank = cursor.number<uint32_t>();
  if (rank > maxRank)
    return wrong(named(tensor) + " has " + llvm::Twine(rank) + " dimensions, at most " +
                 llvm::Twine(maxRank) + " are supported");
  for (uint32_t i = 0; i < rank; ++i) {
    auto extent = cursor.number<uint64_t>();
    if (extent > uint64_t(std::numeric_limits<int64_t>::max()))
      return wrong(named(tensor) + " has the invalid dimension " + llvm::Twine(extent));
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(extent));
  }
  return llvm::Error::success();
}

llvm::Error HeaderReader::setSize(GgufTensor &tensor) const {
  const TensorType &type = *tensor.type;
  uint64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (columns % type.elements != 0)
    return wrong(named(tensor) + " has rows of " + llvm::Twine(columns) +
                 " elements, not a multiple of the block size " + type.name + " (" +
                 llvm::Twine(type.elements) + " each)");
  tensor.size = type.bytes;
  llvm::SmallVector<uint64_t, 4> factors = {columns / type.elements};
  if (!tensor.shape.empty())
    llvm::append_range(factors, llvm::ArrayRef<int64_t>(tensor.shape).drop_back());
  for (uint64_t factor : factors) {
    auto product = llvm::checkedMulUnsigned<uint64_t>(tensor.size, factor);
    if (!product)
      return wrong(named(tensor) + " has a size that overflows");
    tensor.size = *product;
  }
  return llvm::Error::success();
}

llvm::Expected<GgufTensor> HeaderReader::readTensor(uint64_t index) {
  GgufTensor tensor;
  llvm::StringRef name = cursor.string();
  if (cursor.failed())
    return endsIn("the name of tensor " + llvm::Twine(index));
  if (name.empty() || name.size() > maxNameBytes)
    return wrong("has a tensor whose name has " + llvm::Twine(name.size()) + " bytes (tensor " +
                 llvm::Twine(index) + ")");
  tensor.name = name.str();
  if (llvm::Error error = readShape(tensor))
    return std::move(error);
  auto number = cursor.number<uint32_t>();
  tensor.offset = cursor.number<uint64_t>();
  if (cursor.failed())
    return endsIn("the entry of " + named(tensor));
  tensor.type = tensorTypeNumbered(number);
  if (!tensor.type)
    return inputError(path,
                      named(tensor) + " has the type " + llvm::Twine(number) + ", which is unknown",
                      "convert it to one of " + readableTypeNames());
  if (llvm::Error error = setSize(tensor))
    return std::move(error);
  return tensor;
}

llvm::Error HeaderReader::readTensors(uint64_t count) {
  llvm::StringMap<char> seen;
  for (uint64_t i = 0; i < count; ++i) {
    auto tensor = readTensor(i);
    if (!tensor)
      return tensor.takeError();
    if (!seen.try_emplace(tensor->name).second)
      return wrong("has " + named(*tensor) + " twice");
    header.tensors.push_back(std::move(*tensor));
  }
  return llvm::Error::success();
}

/// Offsets are relative to the first aligned byte after the header. Each tensor starts at the next
/// aligned byte after the previous one; otherwise, the type or the shape of one of them does not
/// match its bytes.
llvm::Error HeaderReader::place() {
  uint64_t start = llvm::alignTo(cursor.place(), alignment), end = start;
  llvm::StringRef before;
  auto gap = [&](uint64_t bytes, const std::string &where) {
    std::string previous = before.empty() ? "the header" : "the tensor " + inQuotes(before);
    return wrong("has " + llvm::Twine(bytes) + " bytes that belong to no tensor between " +
                 previous + " and " + where +
                 ", the type or shape of a tensor does not match its size");
  };
  llvm::sort(header.tensors, [](const GgufTensor &a, const GgufTensor &b) {
    return std::tie(a.offset, a.size, a.name) < std::tie(b.offset, b.size, b.name);
  });
  for (GgufTensor &tensor : header.tensors) {
    if (tensor.offset % alignment != 0)
      return wrong(named(tensor) + " has the offset " + llvm::Twine(tensor.offset) +
                   ", not a multiple of the alignment " + llvm::Twine(alignment));
    if (start > size || tensor.offset > size - start || tensor.size > size - start - tensor.offset)
      return wrong(named(tensor) + " has " + llvm::Twine(tensor.size) + " bytes at offset " +
                   llvm::Twine(tensor.offset) + ", beyond the end of the file (" +
                   llvm::Twine(size) + " bytes), it is truncated or its header is wrong");
    tensor.offset += start;
    if (tensor.offset < end)
      return wrong(named(tensor) + " overlaps the tensor " + inQuotes(before));
    if (uint64_t next = llvm::alignTo(end, alignment); tensor.offset > next)
      return gap(tensor.offset - next, named(tensor));
    end = tensor.offset + tensor.size;
    before = tensor.name;
  }
  if (uint64_t next = llvm::alignTo(end, alignment); size > next)
    return gap(size - next, "the end of the file");
  return llvm::Error::success();
}

llvm::Expected<GgufHeader> HeaderReader::read() {
  if (llvm::Error error = readVersion())
    return std::move(error);
  auto tensors = cursor.number<uint64_t>(), keys = cursor.number<uint64_t>();
  if (cursor.failed())
    return endsIn("its header");
  if (keys > maxKeys || tensors > maxTensors)
    return wrong("declares " + llvm::Twine(keys) + " keys and " + llvm::Twine(tensors) +
                 " tensors, at most " + llvm::Twine(maxKeys) + " and " + llvm::Twine(maxTensors) +
                 " are supported");
  if (llvm::Error error = readMetadata(keys))
    return std::move(error);
  if (llvm::Error error = readAlignment())
    return std::move(error);
  if (llvm::Error error = readTensors(tensors))
    return std::move(error);
  if (llvm::Error error = place())
    return std::move(error);
  return std::move(header);
}

} // namespace

llvm::Expected<GgufHeader> readGgufHeader(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef path) {
  return HeaderReader(bytes, path).read();
}

bool beginsAsGguf(llvm::ArrayRef<uint8_t> bytes) {
  return llvm::toStringRef(bytes).starts_with(magic);
}

} // namespace mica
