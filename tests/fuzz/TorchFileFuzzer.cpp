#include "frontend/formats/torch/TorchFile.h"
#include "frontend/formats/torch/TorchPickle.h"
#include "frontend/formats/torch/ZipEntries.h"

#include "llvm/Support/CRC.h"
#include "llvm/Support/Endian.h"

#include <algorithm>
#include <array>
#include <cstdlib>

/// The archive with corrected checksums of its pickles: a changed pickle would be rejected by its
/// checksum before any of its instructions is read.
static std::vector<uint8_t> withChecksums(llvm::ArrayRef<uint8_t> data) {
  std::vector<uint8_t> bytes = data.vec();
  auto entries = mica::readZipEntries(data, "fuzz");
  if (!entries) {
    llvm::consumeError(entries.takeError());
    return bytes;
  }
  for (const auto &entry : *entries) {
    if (!entry.getKey().ends_with("/data.pkl"))
      continue;
    const auto &[offset, size, crc] = entry.getValue();
    std::array<uint8_t, 4> said;
    llvm::support::endian::write32le(said.data(), crc);
    // In the central directory, which follows the entry.
    auto place = std::search(bytes.begin() + offset + size, bytes.end(), said.begin(), said.end());
    if (place != bytes.end())
      llvm::support::endian::write32le(&*place, llvm::crc32(data.slice(offset, size)));
  }
  return bytes;
}

/// Returned tensors are within the file, for any input. Files that begin with 'p' contain only a
/// pickle, so that its instructions are reached sooner.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 0 && data[0] == 'p') {
    llvm::consumeError(mica::readTorchPickle({data + 1, size - 1}, "fuzz").takeError());
    return 0;
  }
  llvm::consumeError(mica::readTorchFile({data, size}, "fuzz").takeError());
  std::vector<uint8_t> bytes = withChecksums({data, size});
  auto tensors = mica::readTorchFile(bytes, "fuzz");
  if (!tensors) {
    llvm::consumeError(tensors.takeError());
    return 0;
  }
  for (const mica::TensorInfo &tensor : *tensors)
    if (tensor.offset > size || tensor.size > size - tensor.offset)
      std::abort();
  return 0;
}
