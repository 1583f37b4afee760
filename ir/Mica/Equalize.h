//===- Equalize.h - cross-layer equalization --------------------*- C++ -*-===//
//
// What `mica.equalize` means, for the interpreter and for the packer.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_MICA_EQUALIZE_H
#define MICA_IR_MICA_EQUALIZE_H

#include "ir/Mica/Mica.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace mica {

/// The ops that say how a source of weights is scaled; null where it is not.
struct Equalization {
  EqualizeOp rows;    ///< that divides its rows
  EqualizeOp columns; ///< that multiplies its columns
};

/// By sources.
llvm::DenseMap<mlir::Attribute, Equalization> findEqualization(mlir::ModuleOp module);

/// What `op` adds to the elements of its rows.
float rowOffset(EqualizeOp op);

/// Raises what each column has so far to the share that its element of `row` has of the row's
/// largest magnitude. A row of zeros has none.
void raiseToShares(llvm::MutableArrayRef<float> columns, llvm::ArrayRef<float> row);

/// b from the largest magnitudes of all channels' rows and the largest shares of their columns.
llvm::SmallVector<float> equalizationFactors(llvm::ArrayRef<float> rows,
                                             llvm::ArrayRef<float> columns);

} // namespace mica

#endif // MICA_IR_MICA_EQUALIZE_H
