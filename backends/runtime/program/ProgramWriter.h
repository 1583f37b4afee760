// Writes a compiled program: sections are streamed to a temporary file beside the target, which
// gets its name only when everything is in place.
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

/// Usage: create, then per section `begin`, `append`..., `end` (or `add`), then `commit`. After any
/// failure, and when destroyed before `commit`, no file is left behind; nor after SIGINT, SIGTERM
/// or SIGHUP, unless the process handles or ignores these itself.
class ProgramWriter {
public:
  /// `target`: the path of the program; an existing program (or an empty file) is replaced, any
  /// other file is an error. `launcher`: the launcher's ELF file. `another`: the hint of errors, as
  /// in cannotBeWritten.
  static rt::Result<std::unique_ptr<ProgramWriter>>
  create(std::string target, const std::string &launcher,
         std::string another = "choose another -o");
  /// The file that `create` writes to, for a check before the work is done.
  static rt::Result<std::unique_ptr<rt::TemporaryFile>> createFile(std::string target,
                                                                   std::string_view another);
  ProgramWriter(const ProgramWriter &) = delete;
  ProgramWriter &operator=(const ProgramWriter &) = delete;

  /// `size`: of the whole section, as far as that is known.
  rt::Status begin(SectionKind kind, uint64_t size = 0);
  /// Any number of bytes; small pieces are gathered before they are written.
  rt::Status append(std::span<const std::byte> bytes);
  rt::Status end();
  /// A whole section at once.
  rt::Status add(SectionKind kind, std::span<const std::byte> bytes);
  /// Bytes of the current section so far.
  uint64_t sectionSize() const { return position - current.offset; }
  /// Writes header and footer, makes the file executable and gives it its name.
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
  uint64_t position = 0;     ///< Of the next byte, buffered ones included.
  uint64_t headerOffset = 0; ///< A multiple of pageSize.
  SectionEntry current{};
  std::vector<SectionEntry> sections;
  std::vector<std::byte> buffer;
  rt::Hasher hasher;
};

} // namespace mica::program

#endif // MICA_BACKENDS_RUNTIME_PROGRAM_PROGRAMWRITER_H
