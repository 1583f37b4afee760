//===- VerifyInPlace.cpp - proves that no cache is ever copied ------------------------===//

#include "backends/cpu/lowering/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mica::cpu {
#define GEN_PASS_DEF_VERIFYINPLACE
#include "backends/cpu/lowering/Passes.h.inc"
} // namespace mica::cpu

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// Follows buffers forward through everything that may stand for the same memory.
struct VerifyInPlacePass : mica::cpu::impl::VerifyInPlaceBase<VerifyInPlacePass> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (isEntry(function))
        for (BlockArgument argument : function.getArguments())
          if (isCache(argument.getType())) {
            cacheTypes.insert(argument.getType());
            reach(argument);
          }
    while (!worklist.empty())
      for (OpOperand &use : worklist.pop_back_val().getUses())
        follow(use, symbols);
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (isEntry(function))
        dropResults(function);
    getOperation().walk([&](memref::AllocOp alloc) {
      if (cacheTypes.contains(alloc.getType()))
        fail(alloc, alloc.getResult());
    });
  }

private:
  /// [layers, sequences, heads, blocks, elements of a block]: no other argument of an entry has
  /// rank 5.
  static bool isCache(Type type) {
    auto buffer = dyn_cast<MemRefType>(type);
    return buffer && buffer.getRank() == 5;
  }

  /// An entry hands its caches back in the memory in which it received them, so that there is
  /// nothing to return.
  void dropResults(func::FuncOp function) {
    auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    for (Value result : ret.getOperands())
      if (!isa<BlockArgument>(result)) {
        ret.emitError(
            "returns a cache that is not the one it received: every append must happen in place");
        return signalPassFailure();
      }
    ret->setOperands({});
    function.setType(FunctionType::get(&getContext(), function.getArgumentTypes(), {}));
  }

  void reach(Value value) {
    if (isa<MemRefType>(value.getType()) && reached.insert(value).second)
      worklist.push_back(value);
  }

  void follow(OpOperand &use, SymbolTableCollection &symbols) {
    Operation *user = use.getOwner();
    if (isa<memref::CopyOp, linalg::CopyOp>(user))
      return fail(user, use.get());
    if (auto call = dyn_cast<func::CallOp>(user)) {
      auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
      if (callee && !callee.isExternal())
        reach(callee.getArgument(use.getOperandNumber()));
      return;
    }
    if (auto loop = dyn_cast<scf::ForOp>(user)) {
      if (BlockArgument carried = loop.getTiedLoopRegionIterArg(&use))
        reach(carried);
      return;
    }
    if (isa<ViewLikeOpInterface, arith::SelectOp>(user))
      for (Value result : user->getResults())
        reach(result);
  }

  /// Names the append behind a copy: the launch that writes the copied buffer.
  void fail(Operation *op, Value buffer) {
    InFlightDiagnostic diagnostic =
        op->emitError("a key/value cache would be copied here; every append must happen in place: "
                      "use only the value that the append returns");
    SmallVector<Value> involved(op->getOperands());
    llvm::append_range(involved, op->getResults());
    for (Value value : involved)
      for (Operation *user : value.getUsers())
        if (auto launch = dyn_cast<exec::LaunchOp>(user);
            launch && llvm::is_contained(launch.getOutputs(), value))
          diagnostic.attachNote(launch.getLoc())
              << "for this append (" << launch.getKernel() << ")";
    signalPassFailure();
  }

  SmallVector<Value> worklist;
  DenseSet<Value> reached;
  DenseSet<Type> cacheTypes;
};

} // namespace
