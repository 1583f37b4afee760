#include "frontend/formats/safetensors/Safetensors.h"

#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/Endian.h"

namespace mica {
namespace {

/// The format's limit for the header, and limits far beyond those of real models.
constexpr uint64_t maxHeaderBytes = 100'000'000;
constexpr size_t maxRank = 8;
constexpr JsonLimits headerLimits = {maxHeaderBytes, 2u << 20, 4, hints::fetch};

/// An entry of the header being checked; every error names it.
class EntryReader {
public:
  EntryReader(llvm::StringRef path, llvm::StringRef name, const llvm::json::Object &entry)
      : path(path), name(name), entry(entry) {}

  /// Reads the entry; its offset is relative to the start of the data, which has `dataBytes`.
  llvm::Expected<TensorInfo> read(uint64_t dataBytes);

private:
  llvm::Error wrong(const llvm::Twine &what) const {
    return inputError(path, "tensor " + inQuotes(name) + " " + what, hints::fetch);
  }
  llvm::Error readType(TensorInfo &tensor) const;
  llvm::Error readShape(TensorInfo &tensor) const;
  llvm::Error readOffsets(TensorInfo &tensor, uint64_t dataBytes) const;
  llvm::Error checkSize(const TensorInfo &tensor) const;
  llvm::Error checkKeys() const;

  llvm::StringRef path, name;
  const llvm::json::Object &entry;
};

llvm::Error EntryReader::checkKeys() const {
  for (const auto &[key, value] : entry)
    if (llvm::StringRef(key) != "dtype" && llvm::StringRef(key) != "shape" &&
        llvm::StringRef(key) != "data_offsets")
      return wrong("has the unknown entry " + inQuotes(key) + " in the header");
  return llvm::Error::success();
}

llvm::Error EntryReader::readType(TensorInfo &tensor) const {
  auto typeName = entry.getString("dtype");
  if (!typeName)
    return wrong("has no dtype in the header");
  auto type = storedTypeNamed(*typeName);
  if (!type)
    return wrong("has the unknown dtype " + inQuotes(*typeName));
  tensor.type = *type;
  return llvm::Error::success();
}

llvm::Error EntryReader::readShape(TensorInfo &tensor) const {
  const llvm::json::Array *shape = entry.getArray("shape");
  if (!shape)
    return wrong("has no shape in the header");
  if (shape->size() > maxRank)
    return wrong("has " + llvm::Twine(shape->size()) + " dimensions, at most " +
                 llvm::Twine(maxRank) + " are supported");
  for (const llvm::json::Value &dimension : *shape) {
    auto size = dimension.getAsInteger();
    if (!size || *size < 0)
      return wrong("has the invalid dimension " + shown(dimension));
    tensor.shape.push_back(*size);
  }
  return llvm::Error::success();
}

llvm::Error EntryReader::readOffsets(TensorInfo &tensor, uint64_t dataBytes) const {
  const llvm::json::Array *offsets = entry.getArray("data_offsets");
  if (!offsets || offsets->size() != 2)
    return wrong("has no pair of data_offsets in the header");
  auto begin = (*offsets)[0].getAsUINT64(), end = (*offsets)[1].getAsUINT64();
  if (!begin || !end || *begin > *end)
    return wrong("has the invalid data_offsets " + shown(llvm::json::Array(*offsets)));
  if (*end > dataBytes)
    return wrong("ends at byte " + llvm::Twine(*end) + " of " + llvm::Twine(dataBytes) +
                 " bytes of data, the file is truncated or its header is wrong");
  tensor.offset = *begin;
  tensor.size = *end - *begin;
  return llvm::Error::success();
}

llvm::Error EntryReader::checkSize(const TensorInfo &tensor) const {
  uint64_t bits = bitsOf(tensor.type);
  for (int64_t dimension : tensor.shape) {
    auto product = llvm::checkedMulUnsigned<uint64_t>(bits, static_cast<uint64_t>(dimension));
    if (!product)
      return wrong("has the shape " + shown(tensor.shape) + ", whose size overflows");
    bits = *product;
  }
  if (bits % 8 != 0 || bits / 8 != tensor.size)
    return wrong("has " + llvm::Twine(tensor.size) + " bytes, but " + nameOf(tensor.type) + " " +
                 shown(tensor.shape) + " needs " + llvm::Twine(bits / 8));
  return llvm::Error::success();
}

llvm::Expected<TensorInfo> EntryReader::read(uint64_t dataBytes) {
  TensorInfo tensor;
  tensor.name = name.str();
  if (llvm::Error error = checkKeys())
    return std::move(error);
  if (llvm::Error error = readType(tensor))
    return std::move(error);
  if (llvm::Error error = readShape(tensor))
    return std::move(error);
  if (llvm::Error error = readOffsets(tensor, dataBytes))
    return std::move(error);
  if (llvm::Error error = checkSize(tensor))
    return std::move(error);
  return tensor;
}

/// The format guarantees that there are no gaps in the data: anything else is a damaged or a
/// crafted file.
llvm::Error checkContiguous(llvm::ArrayRef<TensorInfo> sorted, uint64_t dataBytes,
                            llvm::StringRef path) {
  uint64_t end = 0;
  for (const TensorInfo &tensor : sorted) {
    if (tensor.offset != end)
      return inputError(
          path,
          "tensor " + inQuotes(tensor.name) + " starts at byte " + llvm::Twine(tensor.offset) +
              " of the data, which " +
              (tensor.offset < end ? "overlaps the tensor before it" : "leaves a gap before it") +
              " (ends at " + llvm::Twine(end) + ")",
          hints::fetch);
    end += tensor.size;
  }
  if (end != dataBytes)
    return inputError(path,
                      "has " + llvm::Twine(dataBytes) + " bytes of data, but its tensors end at " +
                          llvm::Twine(end),
                      hints::fetch);
  return llvm::Error::success();
}

llvm::Error checkMetadata(const llvm::json::Value &metadata, llvm::StringRef path) {
  const llvm::json::Object *object = metadata.getAsObject();
  if (!object)
    return inputError(path, "has a __metadata__ in its header that is not an object", hints::fetch);
  for (const auto &[key, value] : *object)
    if (!value.getAsString())
      return inputError(path, "has a __metadata__ entry " + inQuotes(key) + " that is not a string",
                        hints::fetch);
  return llvm::Error::success();
}

llvm::Expected<llvm::StringRef> headerText(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef path) {
  if (bytes.size() < 8)
    return inputError(path, "is not a safetensors file (" + llvm::Twine(bytes.size()) + " bytes)",
                      hints::fetch);
  uint64_t length = llvm::support::endian::read64le(bytes.data());
  if (length > maxHeaderBytes || length > bytes.size() - 8)
    return inputError(path,
                      "declares a header of " + llvm::Twine(length) + " bytes, but " +
                          llvm::Twine(bytes.size() - 8) +
                          " follow; it is truncated or not a safetensors file",
                      hints::fetch);
  llvm::StringRef text = llvm::toStringRef(bytes.slice(8, length));
  // The format allows padding after the object, and nothing before it.
  if (!text.starts_with("{"))
    return inputError(path, "has a header that does not begin with \"{\"", hints::fetch);
  return text;
}

} // namespace

llvm::Expected<std::vector<TensorInfo>> readSafetensorsHeader(llvm::ArrayRef<uint8_t> bytes,
                                                              llvm::StringRef path) {
  auto text = headerText(bytes, path);
  if (!text)
    return text.takeError();
  auto json = parseJson(*text, path, headerLimits);
  if (!json)
    return json.takeError();
  const llvm::json::Object *header = json->getAsObject(); // checked above: it begins with {
  uint64_t dataStart = 8 + text->size(), dataBytes = bytes.size() - dataStart;
  std::vector<TensorInfo> tensors;
  for (const auto &[key, value] : *header) {
    llvm::StringRef name = key;
    if (name == "__metadata__") {
      if (llvm::Error error = checkMetadata(value, path))
        return std::move(error);
      continue;
    }
    const llvm::json::Object *entry = value.getAsObject();
    if (!entry)
      return inputError(path, "has a header entry " + inQuotes(name) + " that is not an object",
                        hints::fetch);
    auto tensor = EntryReader(path, name, *entry).read(dataBytes);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
  llvm::sort(tensors, [](const TensorInfo &a, const TensorInfo &b) {
    return std::tie(a.offset, a.size, a.name) < std::tie(b.offset, b.size, b.name);
  });
  if (llvm::Error error = checkContiguous(tensors, dataBytes, path))
    return std::move(error);
  for (TensorInfo &tensor : tensors)
    tensor.offset += dataStart;
  return tensors;
}

} // namespace mica
