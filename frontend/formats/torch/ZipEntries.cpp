#include "frontend/formats/torch/ZipEntries.h"

#include "frontend/support/InputError.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"

#include <optional>

namespace mica {
namespace {

using namespace llvm::support::endian;

// Signatures of records and sizes of their fixed parts.
constexpr uint32_t endSignature = 0x06054b50, end64Signature = 0x06064b50,
                   locator64Signature = 0x07064b50, entrySignature = 0x02014b50,
                   localSignature = 0x04034b50;
constexpr uint64_t endBytes = 22, end64Bytes = 56, locator64Bytes = 20, entryBytes = 46,
                   localBytes = 30, maxComment = 0xffff;
constexpr uint16_t extra64 = 1;
/// The value of a field whose number is in the 64-bit extension.
constexpr uint32_t elsewhere = 0xffffffff;

class ZipReader {
public:
  ZipReader(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef path) : bytes(bytes), path(path) {}

  llvm::Expected<llvm::StringMap<ZipEntry>> read();

private:
  struct Directory {
    uint64_t offset = 0, entries = 0;
  };

  llvm::Error broken(const llvm::Twine &what) const {
    return inputError(path, "is not a whole zip archive (" + what + ")", hints::fetch);
  }
  /// Whether [offset, offset + size) is within the archive.
  bool has(uint64_t offset, uint64_t size) const {
    return offset <= bytes.size() && size <= bytes.size() - offset;
  }
  const uint8_t *at(uint64_t offset) const { return bytes.data() + offset; }
  std::optional<uint64_t> findEnd() const;
  llvm::Expected<Directory> readDirectory() const;
  llvm::Error readEntry(uint64_t &offset, llvm::StringMap<ZipEntry> &entries) const;

  llvm::ArrayRef<uint8_t> bytes;
  llvm::StringRef path;
};

/// The last record, which may be followed by a comment.
std::optional<uint64_t> ZipReader::findEnd() const {
  if (bytes.size() < endBytes)
    return std::nullopt;
  uint64_t last = bytes.size() - endBytes, first = last > maxComment ? last - maxComment : 0;
  for (uint64_t offset = last + 1; offset-- > first;)
    if (read32le(at(offset)) == endSignature)
      return offset;
  return std::nullopt;
}

llvm::Expected<ZipReader::Directory> ZipReader::readDirectory() const {
  std::optional<uint64_t> end = findEnd();
  if (!end)
    return broken("its directory is missing");
  Directory directory{read32le(at(*end + 16)), read16le(at(*end + 10))};
  if (*end < locator64Bytes || read32le(at(*end - locator64Bytes)) != locator64Signature)
    return directory;
  uint64_t offset = read64le(at(*end - locator64Bytes + 8));
  if (!has(offset, end64Bytes) || read32le(at(offset)) != end64Signature)
    return broken("its 64-bit directory is missing");
  return Directory{read64le(at(offset + 48)), read64le(at(offset + 32))};
}

/// The numbers of an entry that exceed 32 bits.
static void readExtra(llvm::ArrayRef<uint8_t> extra, uint64_t &size, uint64_t &stored,
                      uint64_t &local) {
  while (extra.size() >= 4) {
    uint16_t kind = read16le(extra.data());
    size_t length = read16le(extra.data() + 2);
    extra = extra.drop_front(4);
    if (length > extra.size())
      break;
    llvm::ArrayRef<uint8_t> field = extra.take_front(length);
    extra = extra.drop_front(length);
    if (kind != extra64)
      continue;
    for (uint64_t *number : {&size, &stored, &local}) {
      if (*number != elsewhere || field.size() < 8)
        continue;
      *number = read64le(field.data());
      field = field.drop_front(8);
    }
  }
}

llvm::Error ZipReader::readEntry(uint64_t &offset, llvm::StringMap<ZipEntry> &entries) const {
  if (!has(offset, entryBytes) || read32le(at(offset)) != entrySignature)
    return broken("its directory is truncated");
  const uint8_t *entry = at(offset);
  uint64_t nameSize = read16le(entry + 28), extraSize = read16le(entry + 30),
           commentSize = read16le(entry + 32), stored = read32le(entry + 20),
           size = read32le(entry + 24), local = read32le(entry + 42);
  if (!has(offset, entryBytes + nameSize + extraSize + commentSize))
    return broken("its directory is truncated");
  llvm::StringRef name = llvm::toStringRef(bytes.slice(offset + entryBytes, nameSize));
  readExtra(bytes.slice(offset + entryBytes + nameSize, extraSize), size, stored, local);
  offset += entryBytes + nameSize + extraSize + commentSize;
  bool isEncrypted = read16le(entry + 8) & 1;
  if (read16le(entry + 10) != 0 || size != stored || isEncrypted)
    return inputError(path, "holds " + inQuotes(name) + " compressed or encrypted",
                      "convert the model to safetensors");
  if (!has(local, localBytes) || read32le(at(local)) != localSignature)
    return broken(inQuotes(name) + " is not where its directory says");
  uint64_t data = local + localBytes + read16le(at(local + 26)) + read16le(at(local + 28));
  if (!has(data, size))
    return broken(inQuotes(name) + " is cut");
  if (!entries.try_emplace(name, ZipEntry{data, size, read32le(entry + 16)}).second)
    return broken(inQuotes(name) + " occurs in it twice");
  return llvm::Error::success();
}

llvm::Expected<llvm::StringMap<ZipEntry>> ZipReader::read() {
  auto directory = readDirectory();
  if (!directory)
    return directory.takeError();
  llvm::StringMap<ZipEntry> entries;
  // Each entry consumes bytes of the directory, so a wrong count results in an error.
  for (uint64_t i = 0; i < directory->entries; ++i)
    if (llvm::Error error = readEntry(directory->offset, entries))
      return std::move(error);
  return entries;
}

} // namespace

llvm::Expected<llvm::StringMap<ZipEntry>> readZipEntries(llvm::ArrayRef<uint8_t> bytes,
                                                         llvm::StringRef path) {
  return ZipReader(bytes, path).read();
}

} // namespace mica
