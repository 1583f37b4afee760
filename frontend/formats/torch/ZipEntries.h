//===- ZipEntries.h - the files in an uncompressed archive ------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_TORCH_ZIPENTRIES_H
#define MICA_FRONTEND_FORMATS_TORCH_ZIPENTRIES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <cstdint>

namespace mica {

/// Where an entry's bytes lie in the archive, and the checksum (CRC-32) in its record. Code that
/// reads the bytes checks it.
struct ZipEntry {
  uint64_t offset = 0, size = 0;
  uint32_t crc = 0;
};

/// The entries of the zip archive `bytes` by name, from its directory. They must be stored as they
/// are, lie in the archive, and have different names. Archives beyond 4 GB are read as well.
llvm::Expected<llvm::StringMap<ZipEntry>> readZipEntries(llvm::ArrayRef<uint8_t> bytes,
                                                         llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_TORCH_ZIPENTRIES_H
