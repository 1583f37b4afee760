//===- Mica.h - the mica dialect --------------------------------*- C++ -*-===//
//
// Decoder language models as IR: attributes, types and ops. See MicaOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_MICA_MICA_H
#define MICA_IR_MICA_MICA_H

#include "ir/Mica/Enums.h"
#include "ir/Mica/QuantizedInterface.h"
#include "ir/Mica/Renamed.h"
#include "ir/Mica/StateInterfaces.h"
#include "ir/Quantize/BlockFormats.h"

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
/// A trait of ops that are created by fusion and never built by a frontend.
template <typename ConcreteOp>
class MadeByFusion : public mlir::OpTrait::TraitBase<ConcreteOp, MadeByFusion> {};

/// A trait of ops whose result is in memory before they run: a weight, an entry of a table, or a
/// view of an operand.
template <typename ConcreteOp>
class RunsNoKernel : public mlir::OpTrait::TraitBase<ConcreteOp, RunsNoKernel> {};
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

/// `value` rounded up to a multiple of `unit`.
inline constexpr int64_t roundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// The element type of activations quantized to integers with 8 bits per limb.
mlir::Type integerRowType(mlir::MLIRContext *context, int64_t limbs);
/// The number of limbs of such rows; 0 for other rows.
int64_t limbsOf(mlir::Type rows);

/// The block format of `element`; null if it is not block-quantized.
const BlockFormat *blockFormatOf(mlir::Type element);

/// The layout of a row of !mica.int_rows with `k` elements, in bytes.
struct IntegerRowLayout {
  static constexpr int64_t group = 32, sumGroup = 16;

  IntegerRowLayout(int64_t limbs, int64_t k)
      : limbs(limbs), padded(roundUp(k, 2 * group)), scales(limbs * padded),
        sums(scales + roundUp(padded / group * 4, 64)),
        bytes(sums + roundUp(padded / sumGroup * 4, 64)) {}

  int64_t limbs;  ///< planes [padded] of signed bytes at byte 0, the high limbs first
  int64_t padded; ///< k and, after it, zeros
  int64_t scales; ///< f32 of each group
  int64_t sums;   ///< i32, minus the sum of q of each 16 elements
  int64_t bytes;  ///< of the row

  /// The largest integer of a row with `limbs` limbs.
  static constexpr float limitOf(int64_t limbs) { return limbs == 1 ? 127.0f : 32639.0f; }
};

/// The size in bytes of a packed block-quantized matrix [n, k].
int64_t bytesOfMatrix(const BlockFormat &format, int64_t n, int64_t k);

/// The size in bytes of a weight of that type in a program, packed if its encoding says so.
int64_t getStoredBytes(mlir::RankedTensorType type);

/// Frequencies of mica.sinusoid: 10000^(-i / (count - 1)).
llvm::SmallVector<float> sinusoidFrequencies(int64_t count);

/// Frequencies of rope, [rotaryDim / 2], after scaling (a rope scaling attribute or null), in a
/// sequence of `length` positions, on which some scalings depend. `amplitude` receives the factor
/// of cosine and sine. For the formulas see the ops and attributes in MicaOps.td.
llvm::SmallVector<float> ropeFrequencies(int64_t rotaryDim, double theta, mlir::Attribute scaling,
                                         int64_t length, float &amplitude);

/// For a scaling that depends on the sequence length, the number of positions up to which the
/// frequencies of short sequences apply. None for other scalings and null.
std::optional<int64_t> ropeLengthThreshold(mlir::Attribute scaling);

/// The thresholds of all ropes of a module, ascending.
llvm::SmallVector<int64_t> ropeLengthThresholds(mlir::ModuleOp module);

} // namespace mica

#endif // MICA_IR_MICA_MICA_H
