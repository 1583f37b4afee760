//===- RoundToIntegers.h - what integers stand for --------------*- C++ -*-===//
#ifndef MICA_IR_MICA_ROUNDTOINTEGERS_H
#define MICA_IR_MICA_ROUNDTOINTEGERS_H

#include "ir/Mica/Mica.h"

namespace mica {

/// Replaces the numbers of a row by those that its integers of type `element` stand for:
/// !mica.int8, !mica.int_rows or a !mica.block of Mica's own.
void roundToIntegers(mlir::Type element, llvm::MutableArrayRef<float> row);

} // namespace mica

#endif // MICA_IR_MICA_ROUNDTOINTEGERS_H
