//===- VerifyInPlace.cpp - verify that caches are updated in place --------===//

#include "backends/cpu/lowering/CachesInPlace.h"
#include "ir/Mica/EntrySignature.h"

namespace mica::cpu {
#define GEN_PASS_DEF_VERIFYINPLACE
#include "backends/cpu/lowering/Passes.h.inc"
} // namespace mica::cpu

using namespace mlir;
using namespace mica::cpu;

namespace {

struct VerifyInPlacePass : mica::cpu::impl::VerifyInPlaceBase<VerifyInPlacePass> {
  void runOnOperation() override {
    if (failed(verifyCachesInPlace(getOperation())))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (isEntry(function) && failed(dropResults(function)))
        return signalPassFailure();
  }

private:
  /// Entry functions return caches and hidden rows in the memory in which they received them, so
  /// the results are not needed.
  LogicalResult dropResults(func::FuncOp function) {
    auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    SmallVector<BlockArgument> caches = cachesOf(function);
    if (BlockArgument hidden = mica::EntrySignature(function).hidden())
      caches.push_back(hidden);
    if (!llvm::equal(ret.getOperands(), caches))
      return ret.emitError("returns a cache that is not the one it received in this place: every "
                           "append must happen in place");
    ret->setOperands({});
    function.setType(FunctionType::get(&getContext(), function.getArgumentTypes(), {}));
    return success();
  }
};

} // namespace
