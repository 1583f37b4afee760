//===- Types.cpp - readable types of values -------------------------------===//

#include "tools/explore/Types.h"

#include "ir/Mica/Mica.h"

using namespace mlir;

namespace mica::explore {

/// "T×256": dynamic extents are rows.
static std::string extentsText(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : "×") +
            (ShapedType::isDynamic(extent) ? std::string("T") : std::to_string(extent));
  return text;
}

static TypeRecord recordState(SequenceState state) {
  TypeRecord made{textOf(Type(state)), {}, textOf(state.getElementType()), 0, {}};
  SmallVector<int64_t> shape{state.getLayers()};
  shape.append(state.getRowShape());
  made.shape = extentsText(shape);
  if (int64_t window = state.getWindow(); window > 0)
    made.format += ", window " + std::to_string(window);
  bool isFixed = state.getBytesPerSequence() > 0;
  made.bytes = isFixed ? state.getBytesPerSequence() : state.getBytesPerPosition();
  made.per = isFixed ? "sequence" : "position";
  return made;
}

TypeRecord recordType(Type type) {
  if (auto state = dyn_cast<SequenceState>(type))
    return recordState(state);
  TypeRecord made{textOf(type), {}, {}, 0, {}};
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return made;
  Type element = tensor.getElementType();
  auto quantized = dyn_cast<QuantizedElementType>(element);
  made.shape = extentsText(tensor.getShape());
  made.format = quantized ? quantized.getDisplayName() : textOf(element);
  if (tensor.hasStaticShape() && (quantized || element.isIntOrFloat())) {
    made.bytes = getStoredBytes(tensor);
  } else if (element.isIntOrFloat() && tensor.getNumDynamicDims() == 1) {
    int64_t elements = 1;
    for (int64_t extent : tensor.getShape())
      elements *= ShapedType::isDynamic(extent) ? 1 : extent;
    made.bytes = elements * element.getIntOrFloatBitWidth() / 8;
    made.per = "row";
  }
  return made;
}

} // namespace mica::explore
