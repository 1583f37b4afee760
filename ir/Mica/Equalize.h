//===- Equalize.h - cross-layer equalization --------------------*- C++ -*-===//
//
// The semantics of `mica.equalize`, shared by the interpreter and the packer. See the op in
// WeightOps.td for the formulas.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_MICA_EQUALIZE_H
#define MICA_IR_MICA_EQUALIZE_H

#include "ir/Mica/Mica.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace mica {

/// The ops that scale a source of weights; null if there are none.
struct Equalization {
  EqualizeOp rows;    ///< divides its rows
  EqualizeOp columns; ///< multiplies its columns
};

/// The equalization of each source of a module.
llvm::DenseMap<mlir::Attribute, Equalization> findEqualization(mlir::ModuleOp module);

/// The offset that `op` adds to the elements of its rows.
float rowOffset(EqualizeOp op);

/// Updates `columns`, the largest ratio so far for each column, with the ratios of the elements of
/// `row` to the largest magnitude in `row`. Rows of zeros are ignored.
void raiseToShares(llvm::MutableArrayRef<float> columns, llvm::ArrayRef<float> row);

/// The factors b_j of all channels, from the largest magnitudes r_j in their rows and the largest
/// ratios c_j in their columns.
llvm::SmallVector<float> equalizationFactors(llvm::ArrayRef<float> rows,
                                             llvm::ArrayRef<float> columns);

} // namespace mica

#endif // MICA_IR_MICA_EQUALIZE_H
