// The reader of program files. Random changes never pass the version and the checksums, so each
// input is read unchanged and again with those that match.
#include "backends/runtime/program/ProgramFile.h"

#include <cstring>
#include <vector>

using namespace mica;
using namespace mica::program;

/// Everything that readLayout accepts must be readable without errors in memory access.
static void read(std::span<const std::byte> bytes) {
  rt::MemorySource source(bytes);
  rt::Result<Layout> layout = readLayout(source);
  if (!layout)
    return;
  for (const Section &section : layout->sections) {
    bool whole = bool(readSection(source, section));
    if (whole != bool(verifySection(source, section)))
      __builtin_trap();
  }
}

static void seal(std::vector<std::byte> &bytes) {
  Footer footer;
  if (bytes.size() < sizeof footer)
    return;
  std::byte *end = bytes.data() + bytes.size() - sizeof footer;
  std::memcpy(&footer, end, sizeof footer);
  footer.magic = footerMagic;
  footer.version = formatVersion;
  footer.hash = hashOf(footer);
  std::memcpy(end, &footer, sizeof footer);
  Header header;
  if (bytes.size() < sizeof header || footer.headerOffset > bytes.size() - sizeof header)
    return;
  std::memcpy(&header, bytes.data() + footer.headerOffset, sizeof header);
  header.version = formatVersion;
  header.fileSize = bytes.size();
  header.hash = hashOf(header);
  std::memcpy(bytes.data() + footer.headerOffset, &header, sizeof header);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<std::byte> bytes(reinterpret_cast<const std::byte *>(data),
                               reinterpret_cast<const std::byte *>(data) + size);
  read(bytes);
  seal(bytes);
  read(bytes);
  return 0;
}
