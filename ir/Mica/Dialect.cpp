//===- Dialect.cpp - registration of the mica dialect -----------------------===//

#include "ir/Mica/Mica.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mica;

#include "ir/Mica/MicaDialect.cpp.inc"
#include "ir/Mica/MicaEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/Mica/MicaAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/Mica/MicaTypes.cpp.inc"
#define GET_OP_CLASSES
#include "ir/Mica/MicaOps.cpp.inc"

void MicaDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/Mica/MicaAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/Mica/MicaTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/Mica/MicaOps.cpp.inc"
      >();
}
