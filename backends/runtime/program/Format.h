// The layout of a compiled program, for ProgramWriter and ProgramFile.
//
//   launcher ELF | zeros | Header (one page) | section | zeros | section | ... | Footer
//
// All numbers are little-endian, as the only machines that run programs are. The header is at
// the first page boundary after the launcher, every section begins on a page boundary (the
// launcher is the one at 0), and the footer is the last 32 bytes of the file. The footer finds the
// header; where the footer is missing, the header (found from the launcher's ELF sizes) tells a
// truncated program from a foreign file. A file that ends within the launcher never starts: the
// path of the ELF interpreter, without which the kernel starts nothing, is at the end of the
// header's page.
#ifndef MICA_BACKENDS_RUNTIME_PROGRAM_FORMAT_H
#define MICA_BACKENDS_RUNTIME_PROGRAM_FORMAT_H

#include "backends/runtime/support/HugePages.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mica::program {

inline constexpr std::array<char, 8> headerMagic = {'M', 'I', 'C', 'A', 'P', 'R', 'O', 'G'};
inline constexpr std::array<char, 8> footerMagic = {'M', 'I', 'C', 'A', 'T', 'A', 'I', 'L'};

struct FormatChange {
  uint32_t version;
  std::string_view text;
};
/// Extended with every change that an older reader would misinterpret. A program of an older
/// version is rejected with the first change that it does not have.
inline constexpr std::array<FormatChange, 4> formatChanges = {{
    {3, "weights are stored as !mica.block"},
    {4, "model code calls the runtime through a table"},
    {5, "keys and roles of the manifest have new names"},
    {6, "the manifest counts tensors by type"},
}};
inline constexpr uint32_t formatVersion = formatChanges.back().version;

inline constexpr uint64_t pageSize = 4096;
inline constexpr uint32_t maxSections = 16;
/// The offset of the path of the launcher's ELF interpreter in the header's page; it extends to the
/// end of the page.
inline constexpr uint64_t interpreterOffset = 3840;
/// The maximum size of sections that are read into memory as a whole (all but the weights).
inline constexpr uint64_t maxResidentSection = uint64_t(1) << 30;
/// The maximum file size: larger size fields are invalid, so that sums of two sizes cannot
/// overflow.
inline constexpr uint64_t maxFileSize = uint64_t(1) << 50;

enum class SectionKind : uint32_t {
  Code = 1,    ///< The model's shared object (ELF), opened with dlopen.
  Weights = 2, ///< Packed weights, mapped read-only; of all ranks, if several run the program (see
               ///< rankStride). Their hash is only checked on request.
  Tokenizer = 3, ///< The tokenizer's compact table. May be absent.
  Manifest = 4,  ///< JSON: the description of the model for the runtime.
  Launcher = 5,  ///< Everything before the header. Its hash is only checked on request.
};

struct SectionEntry {
  uint32_t kind;
  uint32_t reserved; ///< Zero.
  uint64_t offset;   ///< From the file's beginning, a multiple of pageSize.
  uint64_t size;     ///< In bytes, without padding.
  uint64_t hash;     ///< XXH3-64 of the section's bytes.
};
static_assert(sizeof(SectionEntry) == 32);

struct Header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t sectionCount;
  uint64_t fileSize; ///< Of the whole program, including the footer.
  uint64_t hash;     ///< XXH3-64 of this structure with `hash` zero.
  std::array<SectionEntry, maxSections> sections;
};
static_assert(sizeof(Header) == 32 + 32 * maxSections && sizeof(Header) <= interpreterOffset);

struct Footer {
  uint64_t headerOffset;
  uint32_t version;
  uint32_t reserved; ///< Zero.
  uint64_t hash;     ///< XXH3-64 of this structure with `hash` zero.
  std::array<char, 8> magic;
};
static_assert(sizeof(Footer) == 32);

/// The section's name in messages and in `info`; empty for an unknown kind.
constexpr std::string_view sectionName(uint32_t kind) {
  switch (static_cast<SectionKind>(kind)) {
  case SectionKind::Code:
    return "code";
  case SectionKind::Weights:
    return "weights";
  case SectionKind::Tokenizer:
    return "tokenizer";
  case SectionKind::Manifest:
    return "manifest";
  case SectionKind::Launcher:
    return "launcher";
  }
  return {};
}

constexpr uint64_t alignTo(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) & ~(alignment - 1);
}

constexpr uint64_t alignToPage(uint64_t offset) { return alignTo(offset, pageSize); }

/// The alignment of the offset of a section with `size` bytes in new files: weights of several huge
/// pages can be mapped in huge pages; the padding is at most an eighth of them.
constexpr uint64_t alignmentOf(SectionKind kind, uint64_t size) {
  return kind == SectionKind::Weights && size >= 8 * rt::hugePage ? rt::hugePage : pageSize;
}

/// If several ranks run a program, its section of weights has those of each, `bytes` each, at this
/// distance.
constexpr uint64_t rankStride(uint64_t bytes) {
  return alignTo(bytes, alignmentOf(SectionKind::Weights, bytes));
}

/// The size of that section.
constexpr uint64_t bytesOfRanks(uint64_t bytes, int64_t ranks) {
  return static_cast<uint64_t>(ranks - 1) * rankStride(bytes) + bytes;
}

/// The value of the structure's `hash` member.
uint64_t hashOf(Header header);
uint64_t hashOf(Footer footer);

} // namespace mica::program

#endif // MICA_BACKENDS_RUNTIME_PROGRAM_FORMAT_H
