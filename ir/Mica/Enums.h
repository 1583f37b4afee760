//===- Enums.h - the enumerations of attributes -----------------*- C++ -*-===//

#ifndef MICA_IR_MICA_ENUMS_H
#define MICA_IR_MICA_ENUMS_H

#include "mlir/IR/OpImplementation.h"

#include "ir/Mica/MicaEnums.h.inc"

#endif // MICA_IR_MICA_ENUMS_H
