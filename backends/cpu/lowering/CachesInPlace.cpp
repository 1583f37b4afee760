//===- CachesInPlace.cpp - verify that no cache is copied -----------------===//

#include "backends/cpu/lowering/CachesInPlace.h"

#include "ir/Mica/EntrySignature.h"

#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

SmallVector<BlockArgument> mica::cpu::cachesOf(func::FuncOp entry) {
  return llvm::filter_to_vector(EntrySignature(entry).states(), [](BlockArgument argument) {
    return isa<MemRefType>(argument.getType());
  });
}

namespace {

/// Follows the caches forward through all values that may refer to the same memory.
class CacheFlow {
public:
  explicit CacheFlow(ModuleOp module) : module(module) {}

  LogicalResult verify() {
    for (auto function : module.getOps<func::FuncOp>())
      if (isEntry(function))
        for (BlockArgument cache : cachesOf(function)) {
          shapes.insert(shapeOf(cache.getType()));
          reach(cache);
        }
    while (!worklist.empty())
      for (OpOperand &use : worklist.pop_back_val().getUses())
        follow(use);
    module.walk([&](Operation *op) {
      for (Value result : op->getResults())
        if (isa<MemRefType>(result.getType()) && !reached.contains(result) &&
            shapes.contains(shapeOf(result.getType())))
          fail(op);
    });
    return result;
  }

private:
  /// A buffer's type without its layout, because a copy may have other strides.
  static Type shapeOf(Type type) {
    auto buffer = cast<MemRefType>(type);
    return MemRefType::get(buffer.getShape(), buffer.getElementType());
  }

  void reach(Value value) {
    if (isa<MemRefType>(value.getType()) && reached.insert(value).second)
      worklist.push_back(value);
  }

  /// Reaches argument `number` of the called or launched function.
  void enter(Operation *op, FlatSymbolRefAttr name, unsigned number) {
    auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(op, name);
    if (callee && !callee.isExternal() && number < callee.getNumArguments())
      reach(callee.getArgument(number));
  }

  void follow(OpOperand &use) {
    Operation *user = use.getOwner();
    unsigned number = use.getOperandNumber();
    if (isa<memref::CopyOp>(user))
      return fail(user);
    if (auto call = dyn_cast<func::CallOp>(user))
      return enter(call, call.getCalleeAttr(), number);
    // A kernel has the arguments begin and end where the launch has the number of tasks.
    if (auto launch = dyn_cast<exec::LaunchOp>(user))
      return enter(launch, launch.getKernelAttr(), number + 1);
    if (auto loop = dyn_cast<scf::ForOp>(user)) {
      if (BlockArgument carried = loop.getTiedLoopRegionIterArg(&use)) {
        reach(carried);
        reach(loop.getTiedLoopResult(carried));
      }
      return;
    }
    if (isa<scf::YieldOp>(user) && isa<scf::IfOp>(user->getParentOp()))
      return reach(user->getParentOp()->getResult(number));
    if (isa<ViewLikeOpInterface, arith::SelectOp>(user))
      for (Value view : user->getResults())
        reach(view);
  }

  /// Emits an error at `op` with a note at the append for which a cache is copied: the launch that
  /// writes the copy.
  void fail(Operation *op) {
    result = failure();
    InFlightDiagnostic diagnostic =
        op->emitError("a cache or state would be copied here; every append must happen in place: "
                      "use only the value that the append returns");
    SmallVector<Value> involved(op->getOperands());
    llvm::append_range(involved, op->getResults());
    for (Value value : involved)
      for (Operation *user : value.getUsers())
        if (auto launch = dyn_cast<exec::LaunchOp>(user);
            launch && llvm::is_contained(launch.getOutputs(), value))
          diagnostic.attachNote(launch.getLoc())
              << "for this append (" << launch.getKernel() << ")";
  }

  ModuleOp module;
  SymbolTableCollection symbols;
  SmallVector<Value> worklist;
  DenseSet<Value> reached;
  DenseSet<Type> shapes;
  LogicalResult result = success();
};

} // namespace

LogicalResult mica::cpu::verifyCachesInPlace(ModuleOp module) { return CacheFlow(module).verify(); }
