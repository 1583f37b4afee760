//===- QuantizedInterface.h - elements of quantized rows --------*- C++ -*-===//

#ifndef MICA_IR_MICA_QUANTIZEDINTERFACE_H
#define MICA_IR_MICA_QUANTIZEDINTERFACE_H

#include "mlir/IR/BuiltinTypes.h"

#include <string>

namespace mica {

/// What has quantized elements.
enum class QuantizedUse {
  Weights, ///< matrices that a program stores
  Rows,    ///< activations that multiply such weights
  Cache,   ///< keys and values
};

/// Whether `element` is an element of quantized rows, whatever has them.
bool isQuantized(mlir::Type element);
/// Whether it is one of this use.
bool isQuantized(mlir::Type element, QuantizedUse use);

} // namespace mica

#include "ir/Mica/QuantizedTypeInterface.h.inc"

#endif // MICA_IR_MICA_QUANTIZEDINTERFACE_H
