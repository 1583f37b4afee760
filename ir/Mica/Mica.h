//===- Mica.h - the mica dialect --------------------------------*- C++ -*-===//
//
// Decoder language models as IR: attributes, types and ops. See MicaOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_MICA_MICA_H
#define MICA_IR_MICA_MICA_H

#include "ir/Mica/Enums.h"
#include "ir/Mica/QuantizedTypes.h"
#include "ir/Mica/Renamed.h"
#include "ir/Mica/RopeInterface.h"
#include "ir/Mica/StateInterfaces.h"
#include "ir/Mica/StepRoles.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mica {
/// A trait of matmuls by the vocabulary, whose results are logits.
template <typename ConcreteOp>
class ComputesLogits : public mlir::OpTrait::TraitBase<ConcreteOp, ComputesLogits> {};

/// A trait of ops that are created by fusion and never built by a frontend.
template <typename ConcreteOp>
class MadeByFusion : public mlir::OpTrait::TraitBase<ConcreteOp, MadeByFusion> {};

/// A trait of ops whose result already exists in memory: a weight, an entry of a table, or a view
/// of an operand.
template <typename ConcreteOp>
class RunsNoKernel : public mlir::OpTrait::TraitBase<ConcreteOp, RunsNoKernel> {};

/// A trait of ops whose results probes do not record: tables, and rearranged or rounded copies of
/// recorded results.
template <typename ConcreteOp>
class NotProbed : public mlir::OpTrait::TraitBase<ConcreteOp, NotProbed> {};
} // namespace mica

#include "ir/Mica/MicaDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/Mica/MicaAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/Mica/MicaTypes.h.inc"

#include "ir/Mica/ProductOpInterfaces.h.inc"
#include "ir/Mica/RowOpInterfaces.h.inc"
#include "ir/Mica/WeightOpInterfaces.h.inc"
#define GET_OP_CLASSES
#include "ir/Mica/MicaOps.h.inc"

namespace mica {

/// Rows of a block in an interleaved weight and columns of a block in a packed one.
inline constexpr int64_t kBlockColumns = 64;

/// A cache pads heads to multiples of this many elements.
inline constexpr int64_t kHeadDimUnit = 16;

} // namespace mica

#endif // MICA_IR_MICA_MICA_H
