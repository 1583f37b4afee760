#include "backends/runtime/text/tokenizer/Unknown.h"
#include "backends/runtime/text/tokenizer/Table.h"

namespace mica::rt::tokenizer {

void encodeUnknown(const Table &table, std::string_view text, bool &afterUnknown,
                   std::vector<int32_t> &ids) {
  if (table.has(ModelFlags::byteFallback)) {
    for (char byte : text)
      if (int32_t id = table.byteIds[static_cast<uint8_t>(byte)]; id != -1)
        ids.push_back(id);
  } else if (!afterUnknown && table.unknownId != -1) {
    ids.push_back(table.unknownId);
  }
  afterUnknown = true;
}

} // namespace mica::rt::tokenizer
