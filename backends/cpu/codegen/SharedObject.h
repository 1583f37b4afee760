//===- SharedObject.h - linking a model's code ------------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_CODEGEN_SHAREDOBJECT_H
#define MICA_BACKENDS_CPU_CODEGEN_SHAREDOBJECT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mica::cpu {

/// Links an ELF object to an ELF shared object that exports its global symbols.
llvm::Expected<llvm::SmallVector<char, 0>> linkSharedObject(llvm::StringRef object);

/// The undefined symbols of an ELF file, sorted.
llvm::Expected<std::vector<std::string>> undefinedSymbols(llvm::StringRef elf);

/// Returns an error that lists the undefined symbols of `elf` that are not in `allowed`.
llvm::Error checkUndefinedSymbols(llvm::StringRef elf, llvm::ArrayRef<llvm::StringRef> allowed);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_CODEGEN_SHAREDOBJECT_H
