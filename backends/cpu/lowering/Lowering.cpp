//===- Lowering.cpp - what the lowering patterns share --------------------===//

#include "backends/cpu/lowering/Lowering.h"
#include "backends/cpu/layout/LaneDepth.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// The byte tensor that stores quantized activations [T, K] or a block-quantized matrix [..., N,
/// K]; null for other tensors.
static RankedTensorType bytesOf(RankedTensorType tensor) {
  auto quantized = dyn_cast<QuantizedElementType>(tensor.getElementType());
  return quantized ? quantized.getPhysicalType(tensor) : RankedTensorType();
}

PhysicalTypeConverter::PhysicalTypeConverter() {
  addConversion([](Type type) { return type; });
  addConversion([](SequenceState state) -> Type {
    RankedTensorType physical = state.getPhysicalType();
    return physical ? Type(physical) : Type(state);
  });
  addConversion([](RankedTensorType tensor) -> Type {
    if (RankedTensorType bytes = bytesOf(tensor))
      return bytes;
    auto layout = dyn_cast_or_null<PackedLayoutAttr>(tensor.getEncoding());
    if (!layout)
      return tensor;
    // A matrix, or a stack of separately packed matrices.
    SmallVector<int64_t> shape(tensor.getShape().drop_back(2));
    int64_t n = tensor.getDimSize(tensor.getRank() - 2), k = tensor.getShape().back();
    shape.append({roundUp(n, layout.getColumns()) / layout.getColumns(),
                  roundUp(k, layout.getKBlock()) / layout.getDepth(), layout.getColumns(),
                  layout.getDepth()});
    return RankedTensorType::get(shape, tensor.getElementType());
  });
  auto cast = [](OpBuilder &builder, Type type, ValueRange inputs, Location loc) -> Value {
    return UnrealizedConversionCastOp::create(builder, loc, type, inputs).getResult(0);
  };
  addSourceMaterialization(cast);
  addTargetMaterialization(cast);
}

exec::CostAttr LaunchCost::attribute(MLIRContext *context) const {
  const int64_t counts[] = {
#define MICA_KERNEL_COST(name, Getter) name,
#include "backends/runtime/abi/KernelCost.def"
#undef MICA_KERNEL_COST
  };
  if (llvm::all_of(counts, [](int64_t count) { return count == 0; }))
    return {};
  return exec::CostAttr::get(context
#define MICA_KERNEL_COST(name, Getter) , name
#include "backends/runtime/abi/KernelCost.def"
#undef MICA_KERNEL_COST
  );
}

int64_t mica::cpu::sizeInBytes(ValueRange tensors) {
  int64_t bytes = 0;
  for (Value tensor : tensors) {
    if (tensor)
      bytes += getStoredBytes(cast<RankedTensorType>(tensor.getType()));
  }
  return bytes;
}

int64_t mica::cpu::bytesPerPosition(KvCacheType cache) {
  return cache.getBytesPerPosition() / cache.getLayers();
}

LogicalResult mica::cpu::checkProduct(Operation *op, Value x, Value weight) {
  if (!isPacked(weight))
    return op->emitOpError("multiplies by a weight without a packed layout");
  auto type = cast<RankedTensorType>(weight.getType());
  auto layout = cast<PackedLayoutAttr>(type.getEncoding());
  int64_t depth = laneDepth(type.getElementType());
  if (layout.getColumns() != kBlockColumns || layout.getDepth() != depth ||
      layout.getKBlock() % (16 * depth) != 0)
    return op->emitOpError(
               "multiplies by a weight whose layout kernels cannot read, expected columns = ")
           << kBlockColumns << ", depth = " << depth << ", k_block a multiple of " << 16 * depth;
  Type ofRows = getElementTypeOrSelf(x);
  if (isQuantized(ofRows) && !isQuantized(type.getElementType()))
    return op->emitOpError("multiplies rows of ")
           << ofRows << " by a weight of " << type.getElementType()
           << ", expected one of !mica.block";
  return success();
}

SmallVector<Value> Launcher::operator()(StringRef base, ArrayAttr identity, Value tasks,
                                        ValueRange inputs, ValueRange outputs,
                                        KernelLibrary::Build build, const LaunchCost &cost) {
  SmallVector<Type> types;
  for (ValueRange values : {inputs, outputs})
    for (Value value : values) {
      auto tensor = dyn_cast<RankedTensorType>(value.getType());
      types.push_back(tensor ? Type(kernelBufferType(tensor)) : value.getType());
    }
  MLIRContext *context = rewriter.getContext();
  func::FuncOp kernel = kernels.getOrCreate(exec::KernelAttr::get(context, base, identity), types,
                                            loc, build, cost.attribute(context));
  auto op = exec::LaunchOp::create(rewriter, loc, outputs.getTypes(),
                                   FlatSymbolRefAttr::get(kernel.getSymNameAttr()), tasks, inputs,
                                   outputs);
  return SmallVector<Value>(op.getResults());
}

Value Launcher::overRows(StringRef base, ArrayAttr identity, ValueRange inputs, Type type,
                         KernelLibrary::Build build, const LaunchCost &cost) {
  Value rows = rowsOf(inputs.front());
  return (*this)(base, identity, rows, inputs, empty(type, rows), build, cost)[0];
}

Value Launcher::rowsOf(Value tensor) { return tensor::DimOp::create(rewriter, loc, tensor, 0); }
Value Launcher::constant(int64_t value) {
  return arith::ConstantIndexOp::create(rewriter, loc, value);
}

Value Launcher::empty(Type type, Value rows) {
  auto tensor = cast<RankedTensorType>(type);
  if (RankedTensorType bytes = bytesOf(tensor))
    tensor = bytes;
  SmallVector<Value> extents(tensor.getNumDynamicDims(), rows);
  return tensor::EmptyOp::create(rewriter, loc, tensor, extents);
}
