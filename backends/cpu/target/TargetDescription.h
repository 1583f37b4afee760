//===- TargetDescription.h - the machine compiled for, as data --*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_TARGET_TARGETDESCRIPTION_H
#define MICA_BACKENDS_CPU_TARGET_TARGETDESCRIPTION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mica::cpu {

/// An x86-64 CPU. Created by `describeTarget`, or by tests directly.
struct TargetDescription {
  std::string cpu;                   ///< LLVM's name, "znver5".
  std::vector<std::string> features; ///< LLVM's names of features that code may use, sorted.
  std::vector<std::string> absent;   ///< Features that LLVM assumes for `cpu` but code may not use.

  unsigned vectorBits = 256; ///< Of the widest vectors worth using: 256 or 512.
  // Features that kernels use: the parameters of #cpu.target with these names.
  bool bf16Dot = false;     ///< Dot products of bf16 pairs, conversions to bf16.
  bool fastBf16Dot = false; ///< Whether those take no longer than two multiply-adds of f32.
  bool int8Dot = false;     ///< Dot products of bytes in vectors of `vectorBits`.
  bool tiles = false;       ///< Tile registers (AMX): products of bf16.
  /// Whether memory is read faster if lines of several pages are prefetched alternately, ahead of
  /// the loop that reads them.
  bool prefetchPages = false;
  /// How many bytes ahead of itself a loop over weights in blocks prefetches, a multiple of 64; 0:
  /// the hardware prefetchers keep up with it.
  unsigned prefetchBytes = 0;

  /// Whether rows of 16-bit integers are stored and multiplied as words (vpmaddwd, vpdpwssd), with
  /// twice as many products per instruction as f32 multiply-adds. bf16 dot products have the same
  /// rate and need no scales.
  bool usesWords() const { return !bf16Dot; }
  bool has(llvm::StringRef feature) const;
  /// Whether the target has all four AVX-512 extensions that kernels need for 512-bit vectors.
  bool hasAvx512() const;
  /// "+avx,+avx2,...,-absent" and tuning features, in the format of LLVM's TargetMachine.
  std::string featureString() const;
};

/// The triple of all code that Mica generates.
inline constexpr const char *kTriple = "x86_64-unknown-linux-gnu";

/// "native" for this machine, else one of LLVM's names. Rejects unknown names (with suggestions)
/// and CPUs below x86-64-v3.
llvm::Expected<TargetDescription> describeTarget(llvm::StringRef name);

/// Whether `cpu` is one of LLVM's names of 64-bit processors.
bool isKnownCpu(llvm::StringRef cpu);

/// The required features that `target` lacks, separated by commas: empty if it has x86-64-v3.
std::string missingForLevel3(const TargetDescription &target);

/// The features that LLVM would assume for the processor of `target` besides its own, sorted.
std::vector<std::string> absentFeatures(const TargetDescription &target);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_TARGET_TARGETDESCRIPTION_H
