//===- ProgramOutput.h - the program file --------------------------------------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_COMPILE_PROGRAMOUTPUT_H
#define MICA_BACKENDS_CPU_COMPILE_PROGRAMOUTPUT_H

#include "backends/cpu/pack/WeightSource.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mica::cpu {

/// Everything that a program is made of.
struct ProgramParts {
  std::string launcher;             ///< path of the launcher's ELF file
  llvm::StringRef code;             ///< the model's shared object
  llvm::ArrayRef<std::byte> tokenizer; ///< empty: the program has none
  std::string manifest;             ///< JSON
  mlir::ModuleOp weights;           ///< `mica.weight` symbols with their places
  const WeightSource *source;
  llvm::function_ref<void(uint64_t done, uint64_t all)> progress;
};

/// Writes the program to `target`, or leaves nothing behind. Errors begin with the path of the file they speak of.
llvm::Error writeProgram(const ProgramParts &parts, llvm::StringRef target);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_COMPILE_PROGRAMOUTPUT_H
