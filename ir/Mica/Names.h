//===- Names.h - what values are called in print ----------------*- C++ -*-===//

#ifndef MICA_IR_MICA_NAMES_H
#define MICA_IR_MICA_NAMES_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mica {

/// The last word of a tensor's name without `weight`, and its numbers:
/// layers.3.experts.1.up_proj.weight => up_proj.3.1.
std::string shortName(llvm::StringRef symbol);

/// `word` of the module that `place` names, "model.layers.*" and "positions" =>
/// "model.layers.*.positions"; `word` alone where it names none.
mlir::Location nameWithin(mlir::Location place, llvm::StringRef word);

/// Prints `module` with the arguments of its functions called by the last words of their places:
/// %positions, %k_cache, %q_proj. What has no place in a model stays a number.
void printNamed(mlir::ModuleOp module, llvm::raw_ostream &os);

/// Prints `module`, by `printNamed` where `isNamed`. Returns the line of each op, from 1 on, in
/// pre-order from the module on; 0: of an op whose printer does not print it by itself.
llvm::SmallVector<unsigned> printWithLines(mlir::ModuleOp module, llvm::raw_ostream &os,
                                           bool isNamed);

} // namespace mica

#endif // MICA_IR_MICA_NAMES_H
