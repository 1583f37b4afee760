//===- ZipEntries.h - the files in an uncompressed archive ------*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_TORCH_ZIPENTRIES_H
#define MICA_FRONTEND_FORMATS_TORCH_ZIPENTRIES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <cstdint>

namespace mica {

/// The location of an entry's bytes in the archive, and its recorded CRC-32, which readers of the
/// bytes must check.
struct ZipEntry {
  uint64_t offset = 0, size = 0;
  uint32_t crc = 0;
};

/// Reads the directory of the zip archive `bytes`: its entries by name. They must be uncompressed,
/// within the archive, and have different names. Supports archives beyond 4 GB.
llvm::Expected<llvm::StringMap<ZipEntry>> readZipEntries(llvm::ArrayRef<uint8_t> bytes,
                                                         llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_TORCH_ZIPENTRIES_H
