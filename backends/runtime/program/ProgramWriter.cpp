#include "backends/runtime/program/ProgramWriter.h"
#include "backends/runtime/support/ByteSource.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

using mica::rt::Error;
using mica::rt::Result;
using mica::rt::Status;

namespace mica::program {

/// The size and alignment of writes, so that file systems cache the file in huge pages.
static constexpr size_t bufferSize = rt::hugePage;

Error ProgramWriter::failed() const { return Error{rt::cannotBeWritten(errno, another)}; }

/// Whether a file has the footer magic of a program of any version.
static bool endsAsProgram(const rt::FileSource &file) {
  std::array<char, footerMagic.size()> end;
  return file.size() >= sizeof(Footer) &&
         file.readAt(file.size() - end.size(), std::as_writable_bytes(std::span(end))) &&
         end == footerMagic;
}

ProgramWriter::ProgramWriter(std::unique_ptr<rt::TemporaryFile> file, std::string another)
    : file(std::move(file)), another(std::move(another)) {
  buffer.reserve(bufferSize);
}

Result<std::unique_ptr<rt::TemporaryFile>> ProgramWriter::createFile(std::string target,
                                                                     std::string_view another) {
  return rt::TemporaryFile::create(std::move(target), {"Mica program", endsAsProgram}, another);
}

Result<std::unique_ptr<ProgramWriter>>
ProgramWriter::create(std::string target, const std::string &launcher, std::string another) {
  auto file = createFile(std::move(target), another);
  if (!file)
    return file.error();
  std::unique_ptr<ProgramWriter> writer(new ProgramWriter(*std::move(file), std::move(another)));
  if (Status copied = writer->copyLauncher(launcher); !copied)
    return copied.error();
  return writer;
}

/// Sets the file offset of the ELF interpreter's path in the launcher that begins with `start`, and
/// returns the path; empty if there is none to move. The path in memory, which the dynamic linker
/// reads, is not moved.
static std::string moveInterpreter(std::span<std::byte> start, uint64_t offset) {
  Elf64_Ehdr elf;
  if (start.size() < sizeof elf)
    return {};
  std::memcpy(&elf, start.data(), sizeof elf);
  if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
      elf.e_phentsize != sizeof(Elf64_Phdr))
    return {};
  for (uint64_t i = 0; i < elf.e_phnum; ++i) {
    Elf64_Phdr segment;
    uint64_t place = elf.e_phoff + i * sizeof segment;
    if (elf.e_phoff > start.size() || place + sizeof segment > start.size())
      return {};
    std::memcpy(&segment, start.data() + place, sizeof segment);
    if (segment.p_type != PT_INTERP)
      continue;
    if (segment.p_filesz > pageSize - interpreterOffset || segment.p_offset > start.size() ||
        segment.p_offset + segment.p_filesz > start.size())
      return {};
    const char *path = reinterpret_cast<const char *>(start.data()) + segment.p_offset;
    segment.p_offset = offset;
    std::memcpy(start.data() + place, &segment, sizeof segment);
    return std::string(path, segment.p_filesz);
  }
  return {};
}

Status ProgramWriter::copyLauncher(const std::string &launcher) {
  Result<rt::FileSource> source = rt::FileSource::open(launcher);
  if (!source)
    return Error{"the launcher '" + launcher + "' " + source.error().message +
                 "; install Mica again"};
  headerOffset = alignToPage(source->size());
  if (Status begun = begin(SectionKind::Launcher); !begun)
    return begun;
  std::string interpreter;
  std::vector<std::byte> piece(bufferSize);
  for (uint64_t done = 0; done < source->size();) {
    std::span<std::byte> part(piece.data(),
                              std::min<uint64_t>(piece.size(), source->size() - done));
    if (Status read = source->readAt(done, part); !read)
      return Error{"the launcher '" + launcher + "': " + read.error().message};
    if (done == 0)
      interpreter = moveInterpreter(part, headerOffset + interpreterOffset);
    if (Status written = append(part); !written)
      return written;
    done += part.size();
  }
  Status padded = append(std::vector<std::byte>(headerOffset - position));
  if (padded)
    padded = end();
  if (!padded)
    return padded;
  std::vector<std::byte> room(pageSize);
  std::memcpy(room.data() + interpreterOffset, interpreter.data(), interpreter.size());
  return write(room);
}

Status ProgramWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    uint64_t room = bufferSize - position % bufferSize;
    std::span<const std::byte> part;
    if (room == bufferSize && bytes.size() >= bufferSize) {
      part = bytes.first(bytes.size() / bufferSize * bufferSize);
      if (!file->writeAt(part, position))
        return failed();
      position += part.size();
    } else {
      part = bytes.first(std::min<uint64_t>(room, bytes.size()));
      buffer.insert(buffer.end(), part.begin(), part.end());
      position += part.size();
      if (part.size() == room)
        if (Status flushed = flush(); !flushed)
          return flushed;
    }
    bytes = bytes.subspan(part.size());
  }
  return {};
}

Status ProgramWriter::flush() {
  bool written = file->writeAt(buffer, position - buffer.size());
  buffer.clear();
  return written ? Status() : failed();
}

Status ProgramWriter::padTo(uint64_t alignment) {
  const std::vector<std::byte> zeros(alignTo(position, alignment) - position);
  return write(zeros);
}

Status ProgramWriter::begin(SectionKind kind, uint64_t size) {
  if (inSection || sections.size() == maxSections)
    return Error{"internal error: cannot begin a section here; please report it"};
  if (Status padded = padTo(alignmentOf(kind, size)); !padded)
    return padded;
  current = {static_cast<uint32_t>(kind), 0, position, 0, 0};
  hasher.reset();
  inSection = true;
  return {};
}

Status ProgramWriter::append(std::span<const std::byte> bytes) {
  if (!inSection)
    return Error{"internal error: bytes outside of a section; please report it"};
  hasher.update(bytes);
  return write(bytes);
}

Status ProgramWriter::end() {
  if (!inSection)
    return Error{"internal error: no section is open; please report it"};
  current.size = sectionSize();
  current.hash = hasher.digest();
  sections.push_back(current);
  inSection = false;
  return {};
}

Status ProgramWriter::add(SectionKind kind, std::span<const std::byte> bytes) {
  Status done = begin(kind, bytes.size());
  if (done)
    done = append(bytes);
  return done ? end() : done;
}

Status ProgramWriter::writeHeader(const Header &header) {
  if (!file->writeAt(std::as_bytes(std::span(&header, 1)), headerOffset))
    return failed();
  return {};
}

Status ProgramWriter::commit() {
  if (inSection || file->isCommitted())
    return Error{"internal error: cannot finish the program here; please report it"};
  if (Status padded = padTo(pageSize); !padded)
    return padded;
  Footer footer{headerOffset, formatVersion, 0, 0, footerMagic};
  footer.hash = hashOf(footer);
  if (Status written = write(std::as_bytes(std::span(&footer, 1))); !written)
    return written;
  if (Status flushed = flush(); !flushed)
    return flushed;
  Header header{headerMagic, formatVersion, static_cast<uint32_t>(sections.size()), position, 0,
                {}};
  std::copy(sections.begin(), sections.end(), header.sections.begin());
  header.hash = hashOf(header);
  if (Status written = writeHeader(header); !written)
    return written;
  if (fchmod(file->descriptor(), 0755) != 0)
    return failed();
  if (!file->commit())
    return failed();
  return {};
}

} // namespace mica::program
