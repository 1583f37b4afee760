//===- ProbeReader.cpp - the files that probes write ----------------------===//

#include "tools/verify/ProbeReader.h"

#include "backends/runtime/profile/Probes.h"
#include "frontend/support/InputError.h"

#include <cstring>

using namespace llvm;

namespace mica::tool {

Expected<ProbeReader> ProbeReader::open(StringRef path, StringRef magic, StringRef kind) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  ProbeReader reader(std::move(*file), path, kind);
  if (!reader.rest().starts_with(magic))
    return reader.broken();
  reader.at = magic.size();
  return std::move(reader);
}

StringRef ProbeReader::rest() const {
  StringRef bytes(reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size());
  return bytes.drop_front(at);
}

Error ProbeReader::broken() const {
  // No test: programs write complete files.
  return inputError(path, "is not a complete " + kind + " (byte " + Twine(at) + ")",
                    "run the program again");
}

Expected<std::optional<ProbeReader::Record>> ProbeReader::next() {
  if (rest().empty())
    return std::nullopt;
  rt::ProbeHead head;
  if (rest().size() < sizeof head)
    return broken();
  std::memcpy(&head, rest().data(), sizeof head);
  at += sizeof head;
  if (head.nameBytes < 0 || static_cast<uint64_t>(head.nameBytes) > rest().size())
    return broken();
  StringRef name = rest().take_front(static_cast<size_t>(head.nameBytes));
  at += name.size();
  return Record{name, head.layer, head.rows, head.columns};
}

Error ProbeReader::take(int64_t rows, int64_t columns, uint64_t size,
                        function_ref<void *(size_t)> allocate) {
  uint64_t room = rest().size() / size;
  auto count = static_cast<uint64_t>(columns);
  if (rows < 0 || columns < 0 || count > room ||
      (rows > 0 && static_cast<uint64_t>(rows) > room / std::max<uint64_t>(1, count)))
    return broken();
  count *= static_cast<uint64_t>(rows);
  void *numbers = allocate(count);
  if (count > 0)
    std::memcpy(numbers, rest().data(), count * size);
  at += count * size;
  return Error::success();
}

} // namespace mica::tool
