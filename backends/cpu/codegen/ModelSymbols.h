//===- ModelSymbols.h - the symbols of a model's code -----------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_CODEGEN_MODELSYMBOLS_H
#define MICA_BACKENDS_CPU_CODEGEN_MODELSYMBOLS_H

#include "llvm/ADT/StringRef.h"

namespace mica::cpu {

/// The symbols that the model's code may leave undefined: libc functions to which LLVM lowers
/// memory operations. Everything else is an error; the runtime is called through a table
/// (RuntimeSlots.h).
inline constexpr llvm::StringRef kLibrarySymbols[] = {"memcpy", "memset", "memmove"};

/// The name of the function that a model's shared object exports.
inline constexpr const char *kForwardSymbol = "mica_forward";

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_CODEGEN_MODELSYMBOLS_H
