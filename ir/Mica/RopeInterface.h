//===- RopeInterface.h - scalings of rope's frequencies ---------*- C++ -*-===//

#ifndef MICA_IR_MICA_ROPEINTERFACE_H
#define MICA_IR_MICA_ROPEINTERFACE_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Diagnostics.h"

#include <optional>

#include "ir/Mica/RopeAttrInterface.h.inc"

#endif // MICA_IR_MICA_ROPEINTERFACE_H
