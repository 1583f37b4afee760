//===- TargetDescription.cpp - properties of a target CPU -----------------===//

#include "backends/cpu/target/TargetDescription.h"

#include "backends/cpu/features/Cpu.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

#include <set>

using namespace llvm;

namespace mica::cpu {

bool TargetDescription::has(StringRef feature) const {
  return llvm::binary_search(features, feature);
}

bool TargetDescription::hasAvx512() const {
  return llvm::all_of(ArrayRef<StringRef>{"avx512f", "avx512bw", "avx512dq", "avx512vl"},
                      [&](StringRef name) { return has(name); });
}

std::string TargetDescription::featureString() const {
  SmallVector<std::string> signs;
  for (const std::string &feature : features)
    signs.push_back("+" + feature);
  for (const std::string &feature : absent)
    signs.push_back("-" + feature);
  // LLVM splits vpdpwssd into two instructions, which have a lower latency in loops but occupy the
  // ports for longer.
  if (int8Dot)
    signs.push_back("+fast-dpwssd");
  return llvm::join(signs, ",");
}

/// LLVM lists features without those that others imply (avx512bw stands for avx512f as well), and
/// for some CPUs without parts of the baseline: add both.
static std::set<std::string> featuresOf(StringRef cpu) {
  SmallVector<StringRef> listed = {"cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "x87"};
  X86::getFeaturesForCPU(cpu, listed);
  StringMap<bool> all;
  for (StringRef name : listed) {
    all[name] = true;
    X86::updateImpliedFeatures(name, /*Enabled=*/true, all);
  }
  std::set<std::string> names;
  for (const StringMapEntry<bool> &feature : all)
    if (feature.second)
      names.insert(feature.first().str());
  return names;
}

/// Removes features that programs cannot check at startup: code may only use the others, and
/// programs should only require features that their code can use.
static void keepKnown(TargetDescription &target) {
  llvm::erase_if(target.features,
                 [](const std::string &name) { return !rt::knownCpuFeature(name); });
  target.absent = absentFeatures(target);
}

std::vector<std::string> absentFeatures(const TargetDescription &target) {
  std::vector<std::string> absent;
  for (const std::string &feature : featuresOf(target.cpu))
    if (!target.has(feature))
      absent.push_back(feature);
  return absent;
}

bool isKnownCpu(StringRef cpu) {
  return X86::parseArchX86(cpu, /*Only64Bit=*/true) != X86::CK_None;
}

/// Whether `cpu` is an Intel CPU, whose prefetchers follow a stream only to the end of its page: on
/// a Xeon with AMX, two threads read 22 GB/s with 8 pages at once, 15 without. AMD's Zen 5 lost 3
/// to 16 % with it. Levels such as x86-64-v4 may be either.
static bool isIntels(StringRef cpu) {
  static constexpr StringLiteral others[] = {"generic", "x86-64", "znver",    "bdver",   "btver",
                                             "k8",      "amd",    "lujiazui", "yongfeng"};
  return llvm::none_of(others, [&](StringRef other) { return cpu.starts_with(other); });
}

/// How far ahead loops over blocks prefetch, because a core spends more time on a line of blocks
/// than its prefetchers look ahead; 0: not at all. On a Zen 3, whose units have 256 bits, decoding
/// with int4 or Q4_1 blocks is 1.1 to 1.5 times as fast with prefetches 2 KiB ahead; 1 to 4 KiB
/// differ little. On a Zen 5, whose memory is faster, decoding is 1.3 to 1.9 times as fast with
/// Q4_0, Q2_K, Q3_K, Q4_K and Q6_K blocks and prefetches 4 to 8 KiB ahead, and equally fast with
/// Q8_0; 2 and 12 KiB are slower. On a Zen 4, decoding is 1.1 to 1.3 times as fast without
/// prefetches as with those of 2 KiB, with int4, Q4_1, Q2_K, Q3_K, Q4_K and Q6_K blocks; 4 and
/// 8 KiB are slower as well.
static int64_t prefetchDistance(StringRef cpu) {
  if (!cpu.starts_with("znver") || cpu == "znver4")
    return 0;
  return cpu < "znver5" ? 2048 : 6144;
}

/// Sets the members that depend on the feature list and the name.
static void deriveFacts(TargetDescription &target) {
  // Masks and 32-lane bf16 in kernels need all four basic extensions of AVX-512.
  target.vectorBits = target.hasAvx512() ? 512 : 256;
  // A flag is set if it may be, unless it is decided below. Every CPU with AMX supports both
  // formats.
#define MICA_TARGET_FLAG(name, Getter, parameter, met, needs) target.name = met;
#include "backends/cpu/target/TargetFacts.def"
  // avx512vnni has an instruction for 256 bits only with avx512vl.
  target.int8Dot &= target.vectorBits == 512 || target.has("avxvnni");
  // On AMD (since Zen 4) they have the rate of multiply-adds, on Intel (Cooper Lake, Sapphire
  // Rapids) a quarter of it: 1.2 instead of 4.8 per ns on a Xeon with AMX.
  target.fastBf16Dot &= StringRef(target.cpu).starts_with("znver");
  target.prefetchPages = isIntels(target.cpu);
  target.prefetchBytes = prefetchDistance(target.cpu);
}

std::string missingForLevel3(const TargetDescription &target) {
  SmallVector<std::string> missing;
  for (const std::string &feature : featuresOf("x86-64-v3"))
    if (rt::knownCpuFeature(feature) && !target.has(feature))
      missing.push_back(feature);
  return llvm::join(missing, ", ");
}

static TargetDescription describeNative() {
  TargetDescription target;
  target.cpu = sys::getHostCPUName().str();
  StringMap<bool> present = sys::getHostCPUFeatures();
  std::set<std::string> has;
  for (const StringMapEntry<bool> &feature : present)
    if (feature.second)
      has.insert(feature.first().str());
  // A virtual machine may hide features that its CPU's name implies. Names that the host detection
  // does not know (x87, cx8, 64bit) are present on every x86-64.
  for (const std::string &feature : featuresOf(target.cpu))
    if (!present.contains(feature))
      has.insert(feature);
  target.features.assign(has.begin(), has.end());
  return target;
}

/// Up to three of LLVM's names for CPUs with x86-64-v3 that resemble `name`, the most similar
/// first, followed by names that suit most machines.
static std::string alike(StringRef name) {
  SmallVector<StringRef> known;
  X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  SmallVector<std::pair<unsigned, StringRef>> ranked;
  for (StringRef candidate : known) {
    unsigned distance = candidate.edit_distance(name.lower());
    bool shared = name.size() > 3 && candidate.contains_insensitive(name);
    std::set<std::string> features = featuresOf(candidate);
    if ((shared || distance <= 2) && features.count("avx2") && features.count("bmi2"))
      ranked.emplace_back(shared ? 0 : distance, candidate);
  }
  llvm::sort(ranked);
  SmallVector<StringRef> names;
  for (auto &[distance, candidate] : ArrayRef(ranked).take_front(3))
    names.push_back(candidate);
  for (StringRef common : {"x86-64-v3", "x86-64-v4", "znver4", "sapphirerapids"})
    if (!llvm::is_contained(names, common))
      names.push_back(common);
  return llvm::join(names, ", ");
}

Expected<TargetDescription> describeTarget(StringRef name) {
  TargetDescription target;
  if (name == "native") {
    target = describeNative();
  } else if (isKnownCpu(name)) {
    target.cpu = name.str();
    std::set<std::string> features = featuresOf(name);
    target.features.assign(features.begin(), features.end());
  } else {
    return createStringError("unknown target '" + name +
                             "'; use native or the name of a CPU such as " + alike(name));
  }
  if (std::string missing = missingForLevel3(target); !missing.empty())
    return createStringError("target '" + name + "' is below x86-64-v3 (it lacks " + missing +
                             "); use a newer one");
  deriveFacts(target);
  keepKnown(target);
  return target;
}

} // namespace mica::cpu
