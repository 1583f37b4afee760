//===- Mica.h - the mica dialect --------------------------------*- C++ -*-===//
//
// Decoder language models as IR: attributes, types and ops. See MicaOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_MICA_MICA_H
#define MICA_IR_MICA_MICA_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/Mica/MicaDialect.h.inc"
#include "ir/Mica/MicaEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/Mica/MicaAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/Mica/MicaTypes.h.inc"
#define GET_OP_CLASSES
#include "ir/Mica/MicaOps.h.inc"

namespace mica {

/// Rows of a block in an interleaved weight and columns of a block in a packed one.
inline constexpr int64_t kBlockColumns = 64;

/// A cache pads heads to multiples of this many elements.
inline constexpr int64_t kHeadDimUnit = 16;

/// `value` rounded up to a multiple of `unit`.
inline constexpr int64_t roundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Frequencies of rope, [rotaryDim / 2], after scaling (a rope scaling attribute or null).
/// `amplitude` receives the factor of cosine and sine. Formulas: see the ops and attributes in
/// MicaOps.td.
llvm::SmallVector<float> ropeFrequencies(int64_t rotaryDim, double theta, mlir::Attribute scaling,
                                         float &amplitude);

} // namespace mica

#endif // MICA_IR_MICA_MICA_H
