//===- Names.h - names of values in printed IR ------------------*- C++ -*-===//

#ifndef MICA_IR_MICA_NAMES_H
#define MICA_IR_MICA_NAMES_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mica {

/// The last component of a tensor's name other than `weight`, followed by its indices:
/// layers.3.experts.1.up_proj.weight => up_proj.3.1.
std::string shortName(llvm::StringRef symbol);

/// A location named `word` within the module that `place` names: "model.layers.*" and "positions"
/// => "model.layers.*.positions"; `word` alone if it names none.
mlir::Location nameWithin(mlir::Location place, llvm::StringRef word);

/// Prints `module` with function arguments named by the last component of their locations:
/// %positions, %k_cache, %q_proj. Arguments without a name are numbered.
void printNamed(mlir::ModuleOp module, llvm::raw_ostream &os);

/// Prints `module`, like printNamed if `isNamed`. Returns the line of each op, counted from 1, in
/// pre-order beginning with the module; 0 for ops that are printed as part of their parent.
llvm::SmallVector<unsigned> printWithLines(mlir::ModuleOp module, llvm::raw_ostream &os,
                                           bool isNamed);

} // namespace mica

#endif // MICA_IR_MICA_NAMES_H
