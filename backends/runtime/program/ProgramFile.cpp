#include "backends/runtime/program/ProgramFile.h"
#include "backends/runtime/support/Hash.h"
#include "backends/runtime/support/HugePages.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <elf.h>
#include <optional>
#include <sys/mman.h>

using mica::rt::Error;
using mica::rt::Result;
using mica::rt::Status;

namespace mica::program {

static Error damaged(const std::string &what) {
  return Error{"the program is damaged: " + what + "; copy or compile it again"};
}

static Error wrongVersion(uint32_t version) {
  std::string own = std::to_string(formatVersion);
  std::string since;
  for (const FormatChange &change : formatChanges)
    if (version < change.version && since.empty())
      since = " (since version " + std::to_string(change.version) + " " + std::string(change.text) +
              ")";
  return Error{"the program has format version " + std::to_string(version) +
               ", this build reads version " + own + since + "; compile it again"};
}

template <typename T>
static Status readStruct(const rt::ByteSource &source, uint64_t offset, T &out) {
  return source.readAt(offset, std::as_writable_bytes(std::span(&out, 1)));
}

/// The offset at which the header of a program would be, according to the launcher's ELF header;
/// nullopt if this is not an ELF file.
static std::optional<uint64_t> headerAfterLauncher(const rt::ByteSource &source) {
  Elf64_Ehdr elf;
  if (!readStruct(source, 0, elf) || std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
      elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_shoff > maxFileSize)
    return std::nullopt;
  return alignToPage(elf.e_shoff + uint64_t(elf.e_shentsize) * elf.e_shnum);
}

/// The reason why there is no footer: the file was truncated, extended or damaged, or is not a
/// program.
static Error noFooter(const rt::ByteSource &source) {
  Header header;
  std::optional<uint64_t> offset = headerAfterLauncher(source);
  if (!offset || !readStruct(source, *offset, header) || header.magic != headerMagic ||
      header.hash != hashOf(header))
    return Error{"is not a Mica program, or a truncated one; pass a file written by "
                 "`mica compile`"};
  if (source.size() == header.fileSize)
    return damaged("its last bytes are not a footer");
  return Error{"the program is " +
               std::string(source.size() < header.fileSize ? "truncated" : "too long") + " (" +
               std::to_string(source.size()) + " bytes instead of " +
               std::to_string(header.fileSize) + "); copy or compile it again"};
}

static Result<Footer> readFooter(const rt::ByteSource &source) {
  Footer footer;
  if (source.size() < sizeof footer || !readStruct(source, source.size() - sizeof footer, footer) ||
      footer.magic != footerMagic)
    return noFooter(source);
  if (footer.hash != hashOf(footer))
    return damaged("its footer does not match its checksum");
  if (footer.version != formatVersion)
    return wrongVersion(footer.version);
  if (footer.headerOffset % pageSize != 0 || footer.headerOffset > source.size())
    return damaged("its footer points outside the file");
  return footer;
}

static Result<Header> readHeader(const rt::ByteSource &source, uint64_t offset) {
  Header header;
  if (Status read = readStruct(source, offset, header); !read)
    return read.error();
  if (header.magic != headerMagic)
    return damaged("there is no header where its footer points");
  if (header.hash != hashOf(header))
    return damaged("its header does not match its checksum");
  if (header.version != formatVersion)
    return wrongVersion(header.version);
  if (header.fileSize != source.size())
    return damaged("it has " + std::to_string(source.size()) + " bytes and its header says " +
                   std::to_string(header.fileSize));
  // The offset in the footer is not covered by the header's hash; return the checked one.
  return header;
}

/// Checks an entry: its kind is known and new, it is page-aligned, begins at or after `end`, and
/// ends before the footer; the launcher's fills the file up to the header.
static Status checkEntry(const SectionEntry &entry, const Layout &layout, uint64_t end) {
  std::string name(sectionName(entry.kind));
  if (name.empty())
    return damaged("a section has the unknown kind " + std::to_string(entry.kind));
  if (layout.find(static_cast<SectionKind>(entry.kind)))
    return damaged("its section '" + name + "' occurs twice");
  bool launcher = entry.kind == static_cast<uint32_t>(SectionKind::Launcher);
  if (launcher ? entry.offset != 0 || entry.size != layout.headerOffset
               : entry.offset % pageSize != 0 || entry.offset < end)
    return damaged("its section '" + name + "' is misplaced");
  uint64_t limit = layout.fileSize - sizeof(Footer);
  if (entry.offset > limit || entry.size > limit - entry.offset)
    return damaged("its section '" + name + "' reaches past the end of the file");
  if (entry.kind != static_cast<uint32_t>(SectionKind::Weights) && entry.size > maxResidentSection)
    return damaged("its section '" + name + "' has the invalid size " + std::to_string(entry.size));
  return {};
}

const Section *Layout::find(SectionKind kind) const {
  auto found = std::find_if(sections.begin(), sections.end(),
                            [&](const Section &s) { return s.kind == kind; });
  return found == sections.end() ? nullptr : &*found;
}

Result<Layout> readLayout(const rt::ByteSource &source) {
  Result<Footer> footer = readFooter(source);
  if (!footer)
    return footer.error();
  Result<Header> header = readHeader(source, footer->headerOffset);
  if (!header)
    return header.error();
  if (header->sectionCount > maxSections)
    return damaged("its header counts " + std::to_string(header->sectionCount) + " sections");
  Layout layout{footer->headerOffset, source.size(), {}};
  uint64_t end = footer->headerOffset + pageSize;
  for (const SectionEntry &entry : std::span(header->sections).first(header->sectionCount)) {
    if (Status fits = checkEntry(entry, layout, end); !fits)
      return fits.error();
    layout.sections.push_back(
        {static_cast<SectionKind>(entry.kind), entry.offset, entry.size, entry.hash});
    end = std::max(end, entry.offset + entry.size);
  }
  for (SectionKind needed :
       {SectionKind::Launcher, SectionKind::Code, SectionKind::Weights, SectionKind::Manifest})
    if (!layout.find(needed))
      return damaged("its section '" + std::string(sectionName(static_cast<uint32_t>(needed))) +
                     "' is missing");
  return layout;
}

static Error wrongHash(const Section &section) {
  return damaged("its section '" + std::string(sectionName(static_cast<uint32_t>(section.kind))) +
                 "' does not match its checksum");
}

Result<std::vector<std::byte>> readSection(const rt::ByteSource &source, const Section &section) {
  if (section.size > maxResidentSection)
    return damaged("a section is too large to be read at once");
  std::vector<std::byte> bytes(section.size);
  if (Status read = source.readAt(section.offset, bytes); !read)
    return read.error();
  if (rt::hashBytes(bytes.data(), bytes.size()) != section.hash)
    return wrongHash(section);
  return bytes;
}

Status verifySection(const rt::ByteSource &source, const Section &section,
                     const std::function<void(uint64_t)> &progress) {
  rt::Hasher hasher;
  std::vector<std::byte> piece(std::min<uint64_t>(section.size, uint64_t(4) << 20));
  for (uint64_t done = 0; done < section.size;) {
    std::span<std::byte> part(piece.data(), std::min<uint64_t>(piece.size(), section.size - done));
    if (Status read = source.readAt(section.offset + done, part); !read)
      return read;
    hasher.update(part);
    done += part.size();
    if (progress)
      progress(done);
  }
  if (hasher.digest() != section.hash)
    return wrongHash(section);
  return {};
}

Result<ProgramFile> ProgramFile::open(const std::string &path) {
  Result<rt::FileSource> file = rt::FileSource::open(path);
  if (!file)
    return file.error();
  Result<Layout> layout = readLayout(*file);
  if (!layout)
    return layout.error();
  return ProgramFile(*std::move(file), *std::move(layout));
}

uint64_t ProgramFile::identity() const {
  std::vector<uint64_t> hashes;
  for (const Section &section : contents.sections)
    hashes.push_back(section.hash);
  return rt::hashBytes(hashes.data(), hashes.size() * sizeof(uint64_t));
}

Result<std::vector<std::byte>> ProgramFile::read(SectionKind kind) const {
  const Section *section = contents.find(kind);
  return section ? readSection(file, *section) : std::vector<std::byte>();
}

Result<rt::Mapping> ProgramFile::map(SectionKind kind, bool large) const {
  const Section *section = contents.find(kind);
  return section ? map(*section, large) : rt::Mapping();
}

Result<rt::Mapping> ProgramFile::map(const Section &section, bool large) const {
  if (section.size == 0)
    return rt::Mapping();
  auto offset = static_cast<off_t>(section.offset);
  bool aligned = section.size >= rt::hugePage && section.offset % rt::hugePage == 0;
  void *address =
      aligned ? rt::mapAtHugePage(section.size, PROT_READ, MAP_PRIVATE, file.descriptor(), offset)
              : mmap(nullptr, section.size, PROT_READ, MAP_PRIVATE, file.descriptor(), offset);
  if (address == MAP_FAILED)
    return Error{"cannot map " + std::to_string(section.size) + " bytes of the program: " +
                 std::strerror(errno) + "; free memory or raise the limit (ulimit -v)"};
  if (aligned && large)
    rt::requestHugePages(address, section.size);
  return rt::Mapping(address, section.size);
}

} // namespace mica::program
