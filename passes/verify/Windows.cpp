//===- Windows.cpp - attention stays within the windows of caches ---------===//
//
// A program overwrites positions outside a cache's window, and its kernels do not check positions.
//
//===----------------------------------------------------------------------===//

#include "passes/verify/Windows.h"
#include "ir/Mica/Mica.h"
#include "passes/support/CacheKinds.h"

using namespace mlir;
using namespace mica;

/// Checks `read`, the keys or values of an attention.
static LogicalResult verifyWindow(AttentionOp attention, Value read) {
  Value cache = findCache(read);
  int64_t kept = cache ? cast<SequenceState>(cache.getType()).getWindow() : 0;
  if (kept == 0 || (attention.getWindow() && static_cast<int64_t>(*attention.getWindow()) <= kept))
    return success();
  InFlightDiagnostic diagnostic = attention.emitOpError("looks back ");
  if (attention.getWindow())
    diagnostic << static_cast<int64_t>(*attention.getWindow()) << " positions";
  else
    diagnostic << "to the first position";
  return diagnostic << ", but its cache has window(" << kept
                    << "): use the largest window of its layers, or none";
}

LogicalResult mica::verifyWindows(ModuleOp module) {
  WalkResult result = module.walk([](AttentionOp attention) -> WalkResult {
    return failure(failed(verifyWindow(attention, attention.getK())) ||
                   failed(verifyWindow(attention, attention.getV())));
  });
  return failure(result.wasInterrupted());
}
