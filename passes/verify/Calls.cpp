//===- Calls.cpp - functions are not recursive ----------------------------===//

#include "passes/verify/Calls.h"
#include "ir/Mica/Mica.h"

using namespace mlir;
using namespace mica;

namespace {
/// Depth-first search over calls; `open` are the functions on the current path.
class CallWalk {
public:
  explicit CallWalk(ModuleOp module) : module(module) {}

  LogicalResult visit(func::FuncOp function) {
    if (!seen.insert(function).second)
      return success();
    open.insert(function);
    WalkResult result = function.walk([&](func::CallOp call) -> WalkResult {
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (open.contains(callee))
        return call.emitOpError("calls @")
               << call.getCallee() << ", which leads back to this call: a step of the model "
               << "would not terminate; call one layer after another";
      return visit(callee);
    });
    open.erase(function);
    return failure(result.wasInterrupted());
  }

private:
  ModuleOp module;
  DenseSet<Operation *> seen, open;
};
} // namespace

LogicalResult mica::verifyNoRecursion(ModuleOp module) {
  CallWalk calls(module);
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(calls.visit(function)))
      return failure();
  return success();
}
