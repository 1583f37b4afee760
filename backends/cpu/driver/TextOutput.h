//===- TextOutput.h - text files written by commands ------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_DRIVER_TEXTOUTPUT_H
#define MICA_BACKENDS_CPU_DRIVER_TEXTOUTPUT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mica::cpu {

/// Writes `content` to the file `path` atomically; `-` is standard output. Errors name `option`,
/// the command line option that gave the path.
llvm::Error writeText(llvm::StringRef path, llvm::StringRef content, llvm::StringRef option);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_DRIVER_TEXTOUTPUT_H
