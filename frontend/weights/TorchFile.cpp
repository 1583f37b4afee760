#include "frontend/weights/TorchFile.h"

#include "frontend/support/InputError.h"
#include "frontend/weights/TorchPickle.h"
#include "frontend/weights/ZipEntries.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CRC.h"

namespace mica {

/// The folder in the archive that holds the pickle; whatever it is called, all else is in it.
static llvm::Expected<std::string> folderOf(const llvm::StringMap<ZipEntry> &entries,
                                            llvm::StringRef path) {
  constexpr llvm::StringLiteral pickle = "/data.pkl";
  llvm::StringRef found;
  for (const auto &entry : entries)
    if (llvm::StringRef name = entry.getKey(); name.consume_back(pickle) && !name.contains('/'))
      found = found.empty() || name < found ? name : found;
  if (found.empty())
    return inputError(path, "holds no pickle of tensors", remedy::fetch);
  return found.str();
}

static llvm::Expected<TensorInfo> place(const TorchTensor &tensor,
                                        const llvm::StringMap<ZipEntry> &entries,
                                        llvm::StringRef folder, llvm::StringRef path) {
  auto entry = entries.find((folder + "/data/" + tensor.storage).str());
  if (entry == entries.end())
    return inputError(path, "lacks the data of tensor " + inQuotes(tensor.name), remedy::fetch);
  // Neither elements nor places are beyond what the pickle says of the storage, which may lie: all
  // is compared as numbers of elements.
  uint64_t element = bitsOf(tensor.type) / 8, elements = 1, held = entry->second.size / element;
  for (int64_t extent : tensor.shape)
    elements *= uint64_t(extent);
  if (elements > held || tensor.first > held - elements)
    return inputError(path, "holds too little data of tensor " + inQuotes(tensor.name),
                      remedy::fetch);
  TensorInfo info;
  info.name = tensor.name.str();
  info.type = tensor.type;
  info.shape = tensor.shape;
  info.offset = entry->second.offset + tensor.first * element;
  info.size = elements * element;
  return info;
}

llvm::Expected<std::vector<TensorInfo>> readTorchFile(llvm::ArrayRef<uint8_t> bytes,
                                                      llvm::StringRef path) {
  // The first byte of a pickle, which no archive begins with.
  if (!bytes.empty() && bytes.front() == 0x80)
    return inputError(path, "is a checkpoint of torch before 1.6",
                      "convert the model to safetensors");
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
    return inputError(path, "is of a big-endian machine", "convert the model to safetensors");
  llvm::ArrayRef<uint8_t> pickle = bytesOf("data.pkl");
  // torch may be told to compute none, and leaves 0 then.
  uint32_t crc = entries->lookup(*folder + "/data.pkl").crc;
  if (crc != 0 && crc != llvm::crc32(pickle))
    return inputError(path, "has a pickle that its checksum does not agree with", remedy::fetch);
  auto tensors = readTorchPickle(pickle, path);
  if (!tensors)
    return tensors.takeError();
  std::vector<TensorInfo> infos;
  for (const TorchTensor &tensor : *tensors) {
    auto info = place(tensor, *entries, *folder, path);
    if (!info)
      return info.takeError();
    infos.push_back(std::move(*info));
  }
  return infos;
}

} // namespace mica
