#include "frontend/formats/torch/TorchFile.h"

#include "frontend/formats/torch/TorchPickle.h"
#include "frontend/formats/torch/ZipEntries.h"
#include "frontend/support/InputError.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/Endian.h"

namespace mica {

/// The folder in the archive that contains the pickle and everything else, whatever its name.
static llvm::Expected<std::string> folderOf(const llvm::StringMap<ZipEntry> &entries,
                                            llvm::StringRef path) {
  constexpr llvm::StringLiteral pickle = "/data.pkl";
  llvm::StringRef found;
  for (const auto &entry : entries)
    if (llvm::StringRef name = entry.getKey(); name.consume_back(pickle) && !name.contains('/'))
      found = found.empty() || name < found ? name : found;
  if (found.empty())
    return inputError(path, "holds no pickle of tensors", hints::fetch);
  return found.str();
}

/// The position of a storage's bytes in the file.
struct StorageBytes {
  uint64_t offset = 0, size = 0;
};

static llvm::Expected<TensorInfo> place(const TorchTensor &tensor,
                                        std::optional<StorageBytes> storage, llvm::StringRef path) {
  if (!storage)
    return inputError(path, "lacks the data of tensor " + inQuotes(tensor.name), hints::fetch);
  // Elements and offsets must be within the storage's size as stated in the pickle, which may be
  // wrong: all are compared as numbers of elements.
  uint64_t element = bitsOf(tensor.type) / 8, held = storage->size / element;
  if (tensor.span > held || tensor.first > held - tensor.span)
    return inputError(path, "holds too little data for tensor " + inQuotes(tensor.name),
                      hints::fetch);
  TensorInfo info;
  info.name = tensor.name.str();
  info.type = tensor.type;
  info.shape = tensor.shape;
  info.strides = tensor.strides;
  info.offset = storage->offset + tensor.first * element;
  info.size = tensor.span * element;
  return info;
}

static llvm::Expected<std::vector<TensorInfo>>
placeAll(llvm::ArrayRef<TorchTensor> tensors, llvm::StringRef path,
         llvm::function_ref<std::optional<StorageBytes>(llvm::StringRef)> find) {
  std::vector<TensorInfo> infos;
  for (const TorchTensor &tensor : tensors) {
    auto info = place(tensor, find(tensor.storage), path);
    if (!info)
      return info.takeError();
    infos.push_back(std::move(*info));
  }
  return infos;
}

static llvm::Error bigEndian(llvm::StringRef path) {
  return inputError(path, "comes from a big-endian machine", "convert the model to safetensors");
}

/// The storages follow the pickles, each preceded by its number of elements.
static llvm::Expected<std::vector<TensorInfo>> readLegacyFile(llvm::ArrayRef<uint8_t> bytes,
                                                              llvm::StringRef path) {
  auto pickles = readLegacyPickles(bytes, path);
  if (!pickles)
    return pickles.takeError();
  if (!pickles->littleEndian)
    return bigEndian(path);
  llvm::StringMap<uint64_t> elementBytes;
  for (const TorchTensor &tensor : pickles->tensors)
    elementBytes[tensor.storage] = bitsOf(tensor.type) / 8;
  llvm::StringMap<StorageBytes> storages;
  llvm::ArrayRef<uint8_t> rest = pickles->rest;
  for (llvm::StringRef name : pickles->storages) {
    auto element = elementBytes.find(name);
    if (element == elementBytes.end())
      return inputError(path, "has the storage " + inQuotes(name) + ", which belongs to no tensor",
                        "convert the model to safetensors");
    uint64_t count = rest.size() < 8 ? 0 : llvm::support::endian::read64le(rest.data());
    if (rest.size() < 8 || count > (rest.size() - 8) / element->second)
      return inputError(path, "ends within the storage " + inQuotes(name), hints::fetch);
    uint64_t size = count * element->second;
    storages[name] = {bytes.size() - rest.size() + 8, size};
    rest = rest.drop_front(8 + size);
  }
  return placeAll(pickles->tensors, path, [&](llvm::StringRef name) {
    auto found = storages.find(name);
    return found == storages.end() ? std::nullopt : std::optional(found->second);
  });
}

llvm::Expected<std::vector<TensorInfo>> readTorchFile(llvm::ArrayRef<uint8_t> bytes,
                                                      llvm::StringRef path) {
  // The first byte of a pickle; no archive begins with it.
  if (!bytes.empty() && bytes.front() == 0x80)
    return readLegacyFile(bytes, path);
  auto entries = readZipEntries(bytes, path);
  if (!entries)
    return entries.takeError();
  auto folder = folderOf(*entries, path);
  if (!folder)
    return folder.takeError();
  auto bytesOf = [&](llvm::StringRef name) {
    ZipEntry entry = entries->lookup((*folder + "/" + name).str());
    return bytes.slice(entry.offset, entry.size);
  };
  if (llvm::StringRef order = llvm::toStringRef(bytesOf("byteorder")); order == "big")
    return bigEndian(path);
  llvm::ArrayRef<uint8_t> pickle = bytesOf("data.pkl");
  // torch can be configured not to compute checksums, and then writes 0.
  uint32_t crc = entries->lookup(*folder + "/data.pkl").crc;
  if (crc != 0 && crc != llvm::crc32(pickle))
    return inputError(path, "has a pickle that does not match its checksum", hints::fetch);
  auto tensors = readTorchPickle(pickle, path);
  if (!tensors)
    return tensors.takeError();
  return placeAll(*tensors, path, [&](llvm::StringRef name) -> std::optional<StorageBytes> {
    auto entry = entries->find((*folder + "/data/" + name).str());
    if (entry == entries->end())
      return std::nullopt;
    return StorageBytes{entry->second.offset, entry->second.size};
  });
}

} // namespace mica
