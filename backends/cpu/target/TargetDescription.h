//===- TargetDescription.h - properties of a target CPU ---------*- C++ -*-===//
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

#define MICA_TARGET_NUMBER(name, Getter, initial) unsigned name = initial;
#define MICA_TARGET_FLAG(name, Getter, parameter, met, needs) bool name = false;
#include "backends/cpu/target/TargetFacts.def"

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
