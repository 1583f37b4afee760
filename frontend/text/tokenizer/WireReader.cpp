#include "frontend/text/tokenizer/WireReader.h"

namespace mica {

bool WireReader::varint(uint64_t &value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    auto byte = static_cast<uint8_t>(rest[0]);
    rest = rest.drop_front();
    value |= uint64_t(byte & 0x7F) << shift;
    if (byte < 0x80)
      return true;
  }
  broken = true;
  return false;
}

bool WireReader::take(uint64_t size, llvm::StringRef &bytes) {
  if (size > rest.size()) {
    broken = true;
    return false;
  }
  bytes = rest.take_front(size);
  rest = rest.drop_front(size);
  return true;
}

bool WireReader::next(WireField &field) {
  uint64_t tag = 0;
  if (rest.empty() || broken || !varint(tag))
    return false;
  field = {static_cast<uint32_t>(tag >> 3), 0, {}};
  switch (tag & 7) {
  case 0:
    return varint(field.integer);
  case 1:
    if (!take(8, field.bytes))
      return false;
    std::memcpy(&field.integer, field.bytes.data(), 8);
    return true;
  case 2: {
    uint64_t size = 0;
    return varint(size) && take(size, field.bytes);
  }
  case 5: {
    uint32_t bits = 0;
    if (!take(4, field.bytes))
      return false;
    std::memcpy(&bits, field.bytes.data(), 4);
    field.integer = bits;
    return true;
  }
  default: // groups are gone since proto2's first years
    broken = true;
    return false;
  }
}

} // namespace mica
