//===- Exec.cpp - the exec dialect ----------------------------------------===//

#include "ir/Exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mica::exec;

#include "ir/Exec/ExecDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/Exec/ExecAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "ir/Exec/ExecOps.cpp.inc"

void ExecDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/Exec/ExecOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/Exec/ExecAttrs.cpp.inc"
      >();
}

LogicalResult ExecDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name != kCostAttr && name != kKernelAttr)
    return success();
  if (!isa<FunctionOpInterface>(op))
    return op->emitOpError() << "has " << name << ", which belongs to kernels";
  bool fits = name == kCostAttr ? isa<CostAttr>(attribute.getValue())
                                : isa<KernelAttr>(attribute.getValue());
  if (!fits)
    return op->emitOpError() << "has an " << name << " that is not a #" << name << ": "
                             << attribute.getValue();
  return success();
}

LogicalResult KernelAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef base,
                                 ArrayAttr) {
  if (base.empty())
    return emitError() << "a kernel does not say what it computes";
  return success();
}

LogicalResult CostAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t weightBytes,
                               int64_t rowWeightBytes, int64_t expertBytes, int64_t experts,
                               int64_t rowExperts, int64_t rowCacheBytes,
                               int64_t positionCacheBytes, int64_t rowFlops, int64_t pairFlops,
                               int64_t window) {
  int64_t counts[] = {weightBytes,   rowWeightBytes,     expertBytes, experts,   rowExperts,
                      rowCacheBytes, positionCacheBytes, rowFlops,    pairFlops, window};
  if (llvm::any_of(counts, [](int64_t count) { return count < 0; }))
    return emitError() << "a cost cannot be negative";
  if (expertBytes > 0 && (rowExperts < 1 || experts < rowExperts))
    return emitError() << "bytes of experts need row_experts of at least 1 and experts of at least "
                          "row_experts";
  return success();
}

/// Buffers among the operands are read; those among the destinations are written as well.
static void addEffects(DestinationStyleOpInterface op,
                       SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

void LaunchOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffects(*this, effects);
}
void MatmulOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffects(*this, effects);
}

void AllGatherOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffects(*this, effects);
}
void AllSliceOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffects(*this, effects);
}
void LocalRowsOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffects(*this, effects);
}
void ShareRowsOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addEffects(*this, effects);
}

void ProbeOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (isa<MemRefType>(getX().getType()))
    effects.emplace_back(MemoryEffects::Read::get(), &getXMutable());
  // Writes a file, not memory of the program, but each probe must be executed exactly once and in
  // order.
  effects.emplace_back(MemoryEffects::Write::get());
}

/// Fails unless `part` has some columns of the rows `whole`.
static LogicalResult verifyColumns(Operation *op, Value part, Value whole) {
  auto some = cast<ShapedType>(part.getType()), all = cast<ShapedType>(whole.getType());
  if (!some.hasRank() || !all.hasRank() || some.getRank() < 2 ||
      some.getElementType() != all.getElementType() ||
      some.getShape().drop_back() != all.getShape().drop_back() ||
      some.isDynamicDim(some.getRank() - 1) || some.getShape().back() > all.getShape().back())
    return op->emitOpError() << "takes some columns of rows and all of them, got " << some
                             << " and " << all;
  return success();
}

/// Fails unless `op` has indices [T] of rows of a table, of which each rank has `n`.
static LogicalResult verifyIndices(Operation *op, Value indices, int64_t n) {
  auto type = cast<ShapedType>(indices.getType());
  if (!type.hasRank() || type.getRank() != 1 || !type.getElementType().isInteger(32))
    return op->emitOpError() << "takes indices [T] in i32, got " << type;
  if (n < 1)
    return op->emitOpError() << "is for ranks with " << n << " rows, expected at least 1";
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "launches " << getKernelAttr() << ", which is not a function";
  size_t expected = kernel.getNumArguments(), given = getInputs().size() + getOutputs().size() + 2;
  if (kernel.getNumResults() != 0)
    return emitOpError() << "launches " << getKernelAttr() << ", which returns values";
  if (expected != given)
    return emitOpError() << "passes " << given - 2 << " operands to " << getKernelAttr()
                         << ", which takes begin, end and " << expected - 2;
  return success();
}

LogicalResult MatmulOp::verify() {
  auto x = cast<ShapedType>(getX().getType()), weight = cast<ShapedType>(getWeight().getType()),
       output = cast<ShapedType>(getOutput().getType());
  int64_t n = getN(), k = getK();
  if (x.getRank() != 2 || output.getRank() != 2 || weight.getRank() != 4 ||
      !weight.hasStaticShape())
    return emitOpError("takes x [T, K], a packed weight of rank 4 and an output [T, N]");
  if (x.getDimSize(1) != k || output.getDimSize(1) != n)
    return emitOpError() << "multiplies by [" << n << ", " << k << "], but x is " << x
                         << " and the output " << output;
  if (weight.getDimSize(0) * weight.getDimSize(2) < n ||
      weight.getDimSize(1) * weight.getDimSize(3) < k)
    return emitOpError() << "has a packed weight " << weight << " smaller than [" << n << ", " << k
                         << "]";
  if (x.getElementType() != weight.getElementType() || !output.getElementType().isF32())
    return emitOpError("needs x and the weight of one type and an output of f32");
  return success();
}

LogicalResult AllGatherOp::verify() { return verifyColumns(*this, getX(), getOutput()); }

LogicalResult AllSliceOp::verify() { return verifyColumns(*this, getOutput(), getX()); }

LogicalResult LocalRowsOp::verify() {
  if (failed(verifyIndices(*this, getX(), getN())))
    return failure();
  return verifyIndices(*this, getOutput(), getN());
}

LogicalResult ShareRowsOp::verify() {
  auto rows = cast<ShapedType>(getOutput().getType());
  if (!rows.hasRank() || rows.getRank() != 2)
    return emitOpError() << "shares rows [T, C], got " << rows;
  return verifyIndices(*this, getX(), getN());
}
