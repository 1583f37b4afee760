// Reads compiled programs. Their content is not trusted.
#ifndef MICA_BACKENDS_RUNTIME_PROGRAM_PROGRAMFILE_H
#define MICA_BACKENDS_RUNTIME_PROGRAM_PROGRAMFILE_H

#include "backends/runtime/program/Format.h"
#include "backends/runtime/support/ByteSource.h"
#include "backends/runtime/support/Mapping.h"

#include <functional>
#include <memory>
#include <vector>

namespace mica::program {

/// A section whose bounds have been checked against the file.
struct Section {
  SectionKind kind;
  uint64_t offset; ///< in bytes from the beginning of the file, a multiple of pageSize
  uint64_t size;   ///< in bytes
  uint64_t hash;   ///< XXH3-64 of its bytes
};

/// The contents of header and footer, checked: launcher, code, weights and manifest are present,
/// no kind occurs twice, sections are in order, do not overlap and lie within the file.
struct Layout {
  uint64_t headerOffset;
  uint64_t fileSize;
  std::vector<Section> sections; ///< in file order

  const Section *find(SectionKind kind) const;
};

/// Finds and checks header and footer. Errors name the damaged part and distinguish truncated
/// programs from other files.
rt::Result<Layout> readLayout(const rt::ByteSource &source);

/// Reads a whole section and checks its hash. Sections larger than maxResidentSection are rejected.
rt::Result<std::vector<std::byte>> readSection(const rt::ByteSource &source,
                                               const Section &section);

/// Reads a section in pieces and checks its hash. `progress` (may be empty) is called with the
/// bytes done so far.
rt::Status verifySection(const rt::ByteSource &source, const Section &section,
                         const std::function<void(uint64_t)> &progress = {});

/// An opened program file.
class ProgramFile {
public:
  static rt::Result<ProgramFile> open(const std::string &path);

  const Layout &layout() const { return contents; }
  const rt::ByteSource &source() const { return file; }
  /// A hash of the contents of all sections: programs with the same one are the same.
  uint64_t identity() const;
  /// The section's bytes, with a checked hash; empty if the section is absent.
  rt::Result<std::vector<std::byte>> read(SectionKind kind) const;
  /// Maps a section, or a part of one that begins on a page boundary, privately and read-only,
  /// without reading or hashing it. `large`: what is not in memory yet is read in huge pages, if
  /// the section is aligned to them.
  rt::Result<rt::Mapping> map(const Section &section, bool large = false) const;
  /// The same for the whole section of a kind; empty if it is absent.
  rt::Result<rt::Mapping> map(SectionKind kind, bool large = false) const;

private:
  ProgramFile(rt::FileSource file, Layout contents)
      : file(std::move(file)), contents(std::move(contents)) {}

  rt::FileSource file;
  Layout contents;
};

} // namespace mica::program

#endif // MICA_BACKENDS_RUNTIME_PROGRAM_PROGRAMFILE_H
