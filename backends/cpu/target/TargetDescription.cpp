//===- TargetDescription.cpp - the machine compiled for, as data ----------===//

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
  // LLVM takes vpdpwssd apart, into two instructions that a loop waits for less but that keep its
  // ports busy for longer.
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

/// What no kernel can use: ciphers, random numbers, cache and context control, and tiles of other
/// formats than bf16 and bytes.
static bool isIrrelevant(StringRef feature) {
  static constexpr StringLiteral names[] = {
      "adx",      "aes",       "clflushopt", "clwb",
      "fsgsbase", "movdir64b", "movdiri",    "pclmul",
      "prfchw",   "rdpid",     "rdrnd",      "rdseed",
      "sha",      "vaes",      "vpclmulqdq", "avx512vp2intersect"};
  static constexpr StringLiteral tiles[] = {"amx-tile", "amx-bf16", "amx-int8"};
  bool otherTiles = feature.starts_with("amx-") && !llvm::is_contained(tiles, feature);
  return otherTiles || feature.starts_with("xsave") || llvm::is_contained(names, feature);
}

/// Code may only use what a program can check when it starts, and a program shall only ask for what
/// its code can use.
static bool isNeeded(StringRef feature) {
  return rt::knownCpuFeature(feature) && !isIrrelevant(feature);
}

/// The rest is taken away from LLVM.
static void keepNeeded(TargetDescription &target) {
  llvm::erase_if(target.features, [](const std::string &name) { return !isNeeded(name); });
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

/// Whether LLVM's name of a CPU is one of Intel's, whose prefetchers follow a stream up to the end
/// of its page only: on a Xeon with AMX two threads read 22 GB/s with 8 pages at once, 15 without.
/// AMD's Zen 5 lost 3 to 16 % by any prefetching. Levels such as x86-64-v4 may be either.
static bool isIntels(StringRef cpu) {
  static constexpr StringLiteral others[] = {"generic", "x86-64", "znver",    "bdver",   "btver",
                                             "k8",      "amd",    "lujiazui", "yongfeng"};
  return llvm::none_of(others, [&](StringRef other) { return cpu.starts_with(other); });
}

/// AMD's cores with 256-bit units spend more time on a line of blocks than their prefetchers look
/// ahead: on a Zen 3, decoding with int4 or Q4_1 blocks is 1.1 to 1.5 times as fast with prefetches
/// 2 KiB ahead; 1 to 4 KiB differ little.
static bool hasShortPrefetchers(StringRef cpu) {
  return cpu == "znver1" || cpu == "znver2" || cpu == "znver3";
}

/// Everything that follows from the feature list and the name.
static void deriveFacts(TargetDescription &target) {
  // The kernels' masks and 32-lane bf16 need all four of AVX-512's basic parts.
  bool avx512 = target.hasAvx512();
  target.vectorBits = avx512 ? 512 : 256;
  target.bf16Dot = avx512 && target.has("avx512bf16");
  // AMD's (Zen 4 on) run at the rate of multiply-adds, Intel's (Cooper Lake, Sapphire Rapids) at a
  // quarter of it: 1.2 against 4.8 per ns on a Xeon with AMX.
  target.fastBf16Dot = target.bf16Dot && StringRef(target.cpu).starts_with("znver");
  target.int8Dot = target.has(avx512 ? "avx512vnni" : "avxvnni");
  // Every CPU with tile registers has both formats.
  target.tiles =
      target.bf16Dot && target.int8Dot && target.has("amx-bf16") && target.has("amx-int8");
  target.prefetchPages = isIntels(target.cpu);
  target.prefetchBytes = hasShortPrefetchers(target.cpu) ? 2048 : 0;
}

std::string missingForLevel3(const TargetDescription &target) {
  SmallVector<std::string> missing;
  for (const std::string &feature : featuresOf("x86-64-v3"))
    if (isNeeded(feature) && !target.has(feature))
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
  // A virtual machine may hide what its CPU's name promises. Names that the host detection does not
  // know (x87, cx8, 64bit) are there on every x86-64.
  for (const std::string &feature : featuresOf(target.cpu))
    if (!present.contains(feature))
      has.insert(feature);
  target.features.assign(has.begin(), has.end());
  return target;
}

/// The names of LLVM's list that reach x86-64-v3 and resemble `name`, the closest first, three at
/// most; after them names that fit most machines.
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
  keepNeeded(target);
  return target;
}

} // namespace mica::cpu
