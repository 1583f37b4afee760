//===- Code.h - LLVM IR and assembly with their lines -----------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_CODE_H
#define MICA_TOOLS_EXPLORE_CODE_H

#include "tools/explore/Record.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Module.h"

namespace mica::explore {

/// Gives a line to instructions that optimization created without one: that of a user, or else of
/// an operand, or else of their function. Such a line has column 1, not 0.
void inferLines(llvm::Module &code);

/// The lines in the debug information of functions: the index of their origins.
llvm::StringMap<uint32_t> linesOfFunctions(const llvm::Module &code);

/// Records `code` and removes its debug information. The origins of an instruction are its line -
/// 1, or 0 without a line.
StageRecord recordIr(llvm::Module &code);

/// Records `text`, assembly with `.loc` directives, without its debug information. An instruction
/// without a line, such as a register spill, has that of the next one of its function, or else of
/// the previous one.
StageRecord recordAssembly(llvm::StringRef text, const llvm::StringMap<uint32_t> &functions);

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_CODE_H
