//===- TargetDescription.h - the machine compiled for, as data --*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_TARGET_TARGETDESCRIPTION_H
#define MICA_BACKENDS_CPU_TARGET_TARGETDESCRIPTION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mica::cpu {

/// An x86-64 CPU. `describeTarget` makes it; a test may make one by hand.
struct TargetDescription {
  std::string cpu;                   ///< LLVM's name, "znver5".
  std::vector<std::string> features; ///< LLVM's names of what code for the CPU may use, sorted.
  std::vector<std::string> absent;   ///< What LLVM would assume of `cpu` and code may not use.

  unsigned vectorBits = 256; ///< Of the widest vectors worth using: 256 or 512.
  // What code for the CPU makes use of: the parameters of #cpu.target that have these names.
  bool bf16Dot = false;     ///< Dot products of bf16 pairs, conversions to bf16.
  bool fastBf16Dot = false; ///< Whether those take no longer than two multiply-adds of f32.
  bool int8Dot = false;     ///< Dot products of bytes in vectors of `vectorBits`.
  bool tiles = false;       ///< Tile registers (AMX): products of bf16.
  /// Whether memory is read faster when lines of several pages are asked for in turn, ahead of the
  /// loop that reads them.
  bool prefetchPages = false;

  /// Whether rows of 16-bit integers are stored and multiplied as such (vpmaddwd, vpdpwssd): twice
  /// as many products per instruction as there are multiply-adds of f32. Dot products of bf16 are
  /// as many and need no scales.
  bool usesWords() const { return !bf16Dot; }
  bool has(llvm::StringRef feature) const;
  /// Whether there are all four parts of AVX-512 that kernels need for vectors of 512 bits.
  bool hasAvx512() const;
  /// "+avx,+avx2,...,-absent" and what LLVM tunes code by, in the form of its TargetMachine.
  std::string featureString() const;
};

/// The triple of all code that Mica generates.
inline constexpr const char *kTriple = "x86_64-unknown-linux-gnu";

/// "native" for this machine, else one of LLVM's names. Refused: unknown names (with those that are
/// spelled alike) and CPUs below x86-64-v3.
llvm::Expected<TargetDescription> describeTarget(llvm::StringRef name);

/// Whether `cpu` is one of LLVM's names of 64-bit processors.
bool isKnownCpu(llvm::StringRef cpu);

/// What a program cannot do without and `target` has not, separated by commas: empty where it
/// reaches x86-64-v3.
std::string missingForLevel3(const TargetDescription &target);

/// What LLVM would assume of the processor of `target` beyond its features, sorted.
std::vector<std::string> absentFeatures(const TargetDescription &target);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_TARGET_TARGETDESCRIPTION_H
