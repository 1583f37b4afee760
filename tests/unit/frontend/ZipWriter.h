//===- ZipWriter.h - zip archives made for a test ---------------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_FRONTEND_ZIPWRITER_H
#define MICA_TESTS_UNIT_FRONTEND_ZIPWRITER_H

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CRC.h"

#include <optional>
#include <string>
#include <vector>

namespace mica::test {

/// A file in an archive: its entry in the directory, valid or not.
struct ZipMember {
  std::string name, data;
  uint16_t flags = 0, method = 0;
  std::optional<uint64_t> stored = {}, size = {}, local = {};
  std::optional<uint32_t> crc = {};
};

struct ZipForm {
  std::string comment = "";
  /// Sizes and offsets are in the 64-bit extension, after another field.
  bool isWide = false;
  std::optional<uint64_t> entries = {}, wideDirectory = {};
};

/// The bytes of an archive with `members`.
inline std::string zipArchive(const std::vector<ZipMember> &members, const ZipForm &form = {}) {
  auto raw = [](uint64_t value, size_t bytes) {
    return std::string(reinterpret_cast<const char *>(&value), bytes);
  };
  constexpr uint64_t elsewhere = ~0ull;
  std::string archive, directory;
  for (const ZipMember &member : members) {
    uint64_t local = member.local.value_or(archive.size());
    uint64_t size = member.size.value_or(member.data.size());
    uint64_t stored = member.stored.value_or(size);
    uint32_t crc = member.crc.value_or(llvm::crc32(llvm::arrayRefFromStringRef(member.data)));
    std::string sums = raw(crc, 4);
    std::string extra = form.isWide ? raw(0x4242, 2) + raw(3, 2) + "abc" + raw(1, 2) + raw(24, 2) +
                                          raw(size, 8) + raw(stored, 8) + raw(local, 8)
                                    : std::string();
    archive += raw(0x04034b50, 4) + std::string(10, '\0') + sums + raw(member.data.size(), 4) +
               raw(member.data.size(), 4) + raw(member.name.size(), 2) + raw(0, 2) + member.name +
               member.data;
    auto narrow = [&](uint64_t value) { return raw(form.isWide ? elsewhere : value, 4); };
    directory += raw(0x02014b50, 4) + raw(0, 4) + raw(member.flags, 2) + raw(member.method, 2) +
                 raw(0, 4) + sums + narrow(stored) + narrow(size) + raw(member.name.size(), 2) +
                 raw(extra.size(), 2) + raw(0, 2) + raw(0, 8) + narrow(local) + member.name + extra;
  }
  uint64_t start = archive.size(), end = start + directory.size();
  uint64_t entries = form.entries.value_or(members.size());
  archive += directory;
  if (form.isWide)
    archive += raw(0x06064b50, 4) + raw(44, 8) + std::string(12, '\0') + raw(entries, 8) +
               raw(entries, 8) + raw(directory.size(), 8) + raw(start, 8) + raw(0x07064b50, 4) +
               raw(0, 4) + raw(form.wideDirectory.value_or(end), 8) + raw(1, 4);
  uint64_t counted = form.isWide ? elsewhere : entries;
  return archive + raw(0x06054b50, 4) + raw(0, 4) + raw(counted, 2) + raw(counted, 2) +
         raw(directory.size(), 4) + raw(form.isWide ? elsewhere : start, 4) +
         raw(form.comment.size(), 2) + form.comment;
}

} // namespace mica::test

#endif // MICA_TESTS_UNIT_FRONTEND_ZIPWRITER_H
