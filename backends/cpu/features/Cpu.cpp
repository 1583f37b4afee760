#include "backends/cpu/features/Cpu.h"

#include <algorithm>
#include <array>
#include <cpuid.h>
#include <cstdint>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace mica::rt {

namespace {
enum Register : uint8_t { eax, ebx, ecx, edx };

/// The register state that the OS must save on context switches: bits of XCR0.
enum State : uint32_t { none = 0, ymm = 0x6, zmm = 0xe6, tiles = 0x60000 };

struct Feature {
  std::string_view name; ///< LLVM's name
  uint32_t leaf, subleaf;
  Register reg;
  uint8_t bit;
  State state;
  std::string_view base = {}; ///< feature that this one implies
};

// The features that code may use. Those that no kernel needs are left out: ciphers, random numbers,
// control of caches and contexts, and AMX for formats other than bf16 and int8. From Intel SDM
// volume 2A (CPUID) and AMD APM volume 3 (appendix E).
constexpr Feature features[] = {
    {"x87", 1, 0, edx, 0, none},
    {"cx8", 1, 0, edx, 8, none},
    {"cmov", 1, 0, edx, 15, none},
    {"mmx", 1, 0, edx, 23, none},
    {"fxsr", 1, 0, edx, 24, none},
    {"sse", 1, 0, edx, 25, none},
    {"sse2", 1, 0, edx, 26, none},
    {"sse3", 1, 0, ecx, 0, none},
    {"ssse3", 1, 0, ecx, 9, none},
    {"fma", 1, 0, ecx, 12, ymm, "avx"},
    {"cx16", 1, 0, ecx, 13, none},
    {"crc32", 1, 0, ecx, 20, none},
    {"sse4.1", 1, 0, ecx, 19, none},
    {"sse4.2", 1, 0, ecx, 20, none},
    {"movbe", 1, 0, ecx, 22, none},
    {"popcnt", 1, 0, ecx, 23, none},
    {"avx", 1, 0, ecx, 28, ymm},
    {"f16c", 1, 0, ecx, 29, ymm, "avx"},
    {"bmi", 7, 0, ebx, 3, none},
    {"avx2", 7, 0, ebx, 5, ymm, "avx"},
    {"bmi2", 7, 0, ebx, 8, none},
    {"avx512f", 7, 0, ebx, 16, zmm, "avx2"},
    {"avx512dq", 7, 0, ebx, 17, zmm, "avx512f"},
    {"avx512ifma", 7, 0, ebx, 21, zmm, "avx512f"},
    {"avx512cd", 7, 0, ebx, 28, zmm, "avx512f"},
    {"avx512bw", 7, 0, ebx, 30, zmm, "avx512f"},
    {"avx512vl", 7, 0, ebx, 31, zmm, "avx512f"},
    {"avx512vbmi", 7, 0, ecx, 1, zmm, "avx512f"},
    {"avx512vbmi2", 7, 0, ecx, 6, zmm, "avx512f"},
    {"gfni", 7, 0, ecx, 8, none},
    {"avx512vnni", 7, 0, ecx, 11, zmm, "avx512f"},
    {"avx512bitalg", 7, 0, ecx, 12, zmm, "avx512f"},
    {"avx512vpopcntdq", 7, 0, ecx, 14, zmm, "avx512f"},
    {"amx-bf16", 7, 0, edx, 22, tiles, "amx-tile"},
    {"avx512fp16", 7, 0, edx, 23, zmm, "avx512f"},
    {"amx-tile", 7, 0, edx, 24, tiles, "avx512f"},
    {"amx-int8", 7, 0, edx, 25, tiles, "amx-tile"},
    {"avxvnni", 7, 1, eax, 4, ymm, "avx2"},
    {"avx512bf16", 7, 1, eax, 5, zmm, "avx512f"},
    {"avxifma", 7, 1, eax, 23, ymm, "avx2"},
    {"avxvnniint8", 7, 1, edx, 4, ymm, "avx2"},
    {"avxneconvert", 7, 1, edx, 5, ymm, "avx2"},
    {"avxvnniint16", 7, 1, edx, 10, ymm, "avx2"},
    {"sahf", 0x80000001, 0, ecx, 0, none},
    {"lzcnt", 0x80000001, 0, ecx, 5, none},
    {"sse4a", 0x80000001, 0, ecx, 6, none},
    {"64bit", 0x80000001, 0, edx, 29, none},
};

const Feature *find(std::string_view name) {
  auto found = std::find_if(std::begin(features), std::end(features),
                            [&](const Feature &f) { return f.name == name; });
  return found == std::end(features) ? nullptr : found;
}

uint64_t enabledStates() {
  uint32_t a, b, c, d;
  constexpr uint32_t osxsave = 1u << 27;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & osxsave))
    return 0;
  // xgetbv as bytes, because the mnemonic requires a newer target than this file is compiled for.
  __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(a), "=d"(d) : "c"(0));
  return uint64_t(d) << 32 | a;
}

/// Requests the permission to use AMX tiles, which Linux grants per process.
bool mayUseTiles() {
  constexpr long requestPermission = 0x1023, tileData = 18; // asm/prctl.h: ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

bool has(const Feature &feature) {
  std::array<uint32_t, 4> regs{};
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &regs[eax], &regs[ebx], &regs[ecx],
                         &regs[edx]))
    return false;
  if (!(regs[feature.reg] >> feature.bit & 1))
    return false;
  if ((enabledStates() & feature.state) != feature.state)
    return false;
  return feature.state != tiles || mayUseTiles();
}
} // namespace

bool knownCpuFeature(std::string_view name) { return find(name) != nullptr; }

bool cpuHas(std::string_view name) {
  const Feature *feature = find(name);
  return feature && has(*feature);
}

std::string cpuName() {
  std::array<uint32_t, 12> words{};
  for (uint32_t i = 0; i < 3; ++i)
    if (!__get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                     &words[4 * i + 3]))
      return "this CPU";
  std::string name(reinterpret_cast<const char *>(words.data()), sizeof words);
  name = name.substr(0, name.find('\0'));
  size_t first = name.find_first_not_of(' '), last = name.find_last_not_of(' ');
  return first == std::string::npos ? "this CPU" : name.substr(first, last - first + 1);
}

Status checkCpu(const std::string &target, const std::vector<std::string> &features) {
  auto lacks = [&](std::string_view name) {
    return std::find(features.begin(), features.end(), name) != features.end() && !cpuHas(name);
  };
  std::string missing;
  for (const std::string &name : features) {
    // A missing avx implies a missing avx2: report only the first feature of such a chain.
    const Feature *feature = find(name);
    if (lacks(name) && !(feature && lacks(feature->base)))
      missing += (missing.empty() ? "" : ", ") + name;
  }
  if (missing.empty())
    return {};
  return Error{"compiled for " + target + ", but this machine (" + cpuName() + ") lacks " +
               missing + "; compile it with --target for this machine"};
}

} // namespace mica::rt
