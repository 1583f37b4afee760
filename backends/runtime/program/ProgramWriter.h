// Writes a compiled program: sections are streamed to a temporary file next to the target, which is
// renamed only when it is complete.
#ifndef MICA_BACKENDS_RUNTIME_PROGRAM_PROGRAMWRITER_H
#define MICA_BACKENDS_RUNTIME_PROGRAM_PROGRAMWRITER_H

#include "backends/runtime/program/Format.h"
#include "backends/runtime/support/Hash.h"
#include "backends/runtime/support/Result.h"
#include "backends/runtime/support/TemporaryFile.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {

/// Usage: create, then per section `begin`, `append`..., `end` (or `add`), then `commit`. No file
/// is left behind after a failure, destruction before `commit`, or SIGINT, SIGTERM and SIGHUP,
/// unless the process handles or ignores these signals.
class ProgramWriter {
public:
  /// `target`: the path of the program; an existing program (or an empty file) is replaced, any
  /// other file is an error. `launcher`: the launcher's ELF file. `another`: the hint of errors;
  /// see cannotBeWritten.
  static rt::Result<std::unique_ptr<ProgramWriter>>
  create(std::string target, const std::string &launcher,
         std::string another = "choose another -o");
  /// Creates only the file that `create` writes to, as a check before the work is done.
  static rt::Result<std::unique_ptr<rt::TemporaryFile>> createFile(std::string target,
                                                                   std::string_view another);
  ProgramWriter(const ProgramWriter &) = delete;
  ProgramWriter &operator=(const ProgramWriter &) = delete;

  /// Begins a section; `size` is its size, if known.
  rt::Status begin(SectionKind kind, uint64_t size = 0);
  /// Appends any number of bytes; small pieces are buffered.
  rt::Status append(std::span<const std::byte> bytes);
  rt::Status end();
  /// Adds a whole section.
  rt::Status add(SectionKind kind, std::span<const std::byte> bytes);
  /// The number of bytes of the current section so far.
  uint64_t sectionSize() const { return position - current.offset; }
  /// Writes header and footer, makes the file executable and renames it to the target.
  rt::Status commit();

private:
  ProgramWriter(std::unique_ptr<rt::TemporaryFile> file, std::string another);

  rt::Status copyLauncher(const std::string &launcher);
  rt::Status write(std::span<const std::byte> bytes);
  rt::Status flush();
  rt::Status padTo(uint64_t alignment);
  rt::Status writeHeader(const Header &header);
  rt::Error failed() const;

  std::unique_ptr<rt::TemporaryFile> file;
  std::string another;
  bool inSection = false;
  uint64_t position = 0;     ///< of the next byte, including buffered ones
  uint64_t headerOffset = 0; ///< a multiple of pageSize
  SectionEntry current{};
  std::vector<SectionEntry> sections;
  std::vector<std::byte> buffer;
  rt::Hasher hasher;
};

} // namespace mica::program

#endif // MICA_BACKENDS_RUNTIME_PROGRAM_PROGRAMWRITER_H
