//===- StateInterfaces.h - state kept between calls -------------*- C++ -*-===//

#ifndef MICA_IR_MICA_STATEINTERFACES_H
#define MICA_IR_MICA_STATEINTERFACES_H

#include "ir/Mica/Enums.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

namespace mica {

/// A state that an op consumes, its next value, and the index of the layer that is written.
struct StateUpdate {
  mlir::Value state, next, layer;
  std::optional<KvKind> kind = std::nullopt; ///< if the op determines the content
};

} // namespace mica

#include "ir/Mica/StateOpInterfaces.h.inc"
#include "ir/Mica/StateTypeInterfaces.h.inc"

#endif // MICA_IR_MICA_STATEINTERFACES_H
