//===- Code.h - LLVM IR and assembly with their lines -----------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_CODE_H
#define MICA_TOOLS_EXPLORE_CODE_H

#include "tools/explore/Record.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Module.h"

namespace mica::explore {

/// Gives a line to instructions that optimization has made without one: that of an instruction
/// which uses them, else that of one which they use, else that of their function. Such a line has
/// the column 1 and not 0.
void inferLines(llvm::Module &code);

/// The lines of debug information that functions have: the index of their origins.
llvm::StringMap<uint32_t> linesOfFunctions(const llvm::Module &code);

/// Records `code` and removes its debug information. Origins of an instruction are its line - 1, 0
/// where it has none.
StageRecord recordIr(llvm::Module &code);

/// Records `text`, assembly with `.loc` directives, which are left out with all else that debug
/// information adds. An instruction without a line, such as one that moves a register to the stack,
/// has that of the next one of its function, else that of the one before.
StageRecord recordAssembly(llvm::StringRef text, const llvm::StringMap<uint32_t> &functions);

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_CODE_H
