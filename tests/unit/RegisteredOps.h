// The ops of a dialect, for tests of all of them.
#ifndef MICA_TESTS_UNIT_REGISTEREDOPS_H
#define MICA_TESTS_UNIT_REGISTEREDOPS_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"

#include <string>
#include <vector>

namespace mica::test {

/// The names of all ops of the mica dialect. Not getRegisteredOperationsByDialect: its binary
/// search, as of LLVM 22, misses the ops of a dialect if those of others are registered as well.
inline std::vector<std::string> registeredMicaOps(mlir::MLIRContext &context) {
  std::vector<std::string> names;
  for (mlir::RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getDialectNamespace() == "mica")
      names.push_back(name.getStringRef().str());
  return names;
}

} // namespace mica::test

#endif // MICA_TESTS_UNIT_REGISTEREDOPS_H
