//===- PlanBuffers.cpp - allocations to views of one scratch buffer -------===//

#include "backends/cpu/lowering/Passes.h"
#include "ir/Mica/EntrySignature.h"

#include "mlir/Analysis/Liveness.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mica::cpu {
#define GEN_PASS_DEF_PLANBUFFERS
#include "backends/cpu/lowering/Passes.h.inc"
} // namespace mica::cpu

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

constexpr int64_t kAlignment = 64;

/// What the size of a buffer is a multiple of: the rows of a call, those that have logits, or
/// nothing. Buffers of each kind have a region of their own, in this order.
enum class Extent : uint8_t { Rows, Outputs, Fixed };

/// An allocation, live from its first to its last use, which are indices of ops in its block.
struct Buffer {
  memref::AllocOp alloc;
  int64_t bytes; ///< per row or output, or in total; a multiple of kAlignment
  Extent extent;
  unsigned first, last;
  int64_t offset = 0;
};

/// Bytes of scratch memory that a function and its callees need.
struct Need {
  int64_t perRow = 0, perOutput = 0, fixed = 0;

  int64_t &of(Extent extent) {
    return extent == Extent::Rows ? perRow : extent == Extent::Outputs ? perOutput : fixed;
  }
  Need operator+(const Need &other) const {
    return {perRow + other.perRow, perOutput + other.perOutput, fixed + other.fixed};
  }
  void raiseTo(const Need &other) {
    perRow = std::max(perRow, other.perRow);
    perOutput = std::max(perOutput, other.perOutput);
    fixed = std::max(fixed, other.fixed);
  }
};

/// Whether `size` is the number of rows with logits: that of the vector of their indices, or of a
/// buffer that has as many rows.
bool isNumberOfOutputs(Value size) {
  auto dim = size.getDefiningOp<memref::DimOp>();
  if (!dim || dim.getConstantIndex() != 0)
    return false;
  if (auto alloc = dim.getSource().getDefiningOp<memref::AllocOp>())
    return alloc.getType().isDynamicDim(0) && isNumberOfOutputs(alloc.getDynamicSizes()[0]);
  return EntrySignature::roleOf(dim.getSource()) == EntryRole::LogitIndices;
}

struct PlanBuffersPass : mica::cpu::impl::PlanBuffersBase<PlanBuffersPass> {
  void runOnOperation() override {
    Need maxNeed;
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!isEntry(function))
        continue;
      if (!scratchOf(function)) {
        function.emitOpError("@") << function.getSymName() << " has no argument with "
                                  << kEntryRoleAttr << " = \"scratch\" for buffers";
        return signalPassFailure();
      }
      std::optional<Need> need = planFunction(function);
      if (!need)
        return signalPassFailure();
      maxNeed.raiseTo(*need);
    }
    Builder builder(&getContext());
    getOperation()->setAttr(kScratchPerRowAttr, builder.getI64IntegerAttr(maxNeed.perRow));
    getOperation()->setAttr(kScratchPerOutputAttr, builder.getI64IntegerAttr(maxNeed.perOutput));
    getOperation()->setAttr(kScratchFixedAttr, builder.getI64IntegerAttr(maxNeed.fixed));
  }

private:
  static Value scratchOf(func::FuncOp function) {
    return isEntry(function) ? EntrySignature(function).argument(EntryRole::Scratch)
                             : function.getArguments().back();
  }

  /// Plans a function and the functions that it calls, whose scratch memory follows its own
  /// buffers.
  std::optional<Need> planFunction(func::FuncOp function) {
    keepResults(function);
    FailureOr<SmallVector<Buffer>> buffers = collect(function);
    if (failed(buffers))
      return std::nullopt;
    Need own = place(*buffers);
    Need need = own;
    SmallVector<func::CallOp> calls;
    function.walk([&](func::CallOp call) { calls.push_back(call); });
    for (func::CallOp call : calls) {
      auto callee = getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
      if (callee.isExternal())
        continue;
      if (visited.insert(callee).second) {
        (void)callee.insertArgument(callee.getNumArguments(), plainBytes(), {}, callee.getLoc());
        std::optional<Need> inner = planFunction(callee);
        if (!inner)
          return std::nullopt;
        planned[callee] = *inner;
      }
      need.raiseTo(own + planned[callee]);
    }
    if (failed(rewrite(function, *buffers, own, calls)))
      return std::nullopt;
    return need;
  }

  Type plainBytes() {
    return MemRefType::get(ShapedType::kDynamic, Builder(&getContext()).getI8Type());
  }

  /// The results of a function are in scratch memory that the next call reuses: the caller copies
  /// them to a separate buffer, unless the only use is such a copy before any other call. If the
  /// call reads a buffer for the last time (in a loop, the carried one), that buffer is reused.
  static void keepResults(func::FuncOp function) {
    function.walk([](func::CallOp call) {
      OpBuilder builder(call->getContext());
      builder.setInsertionPointAfter(call);
      for (OpResult result : call.getResults())
        if (isa<MemRefType>(result.getType()) && !result.use_empty() && !isCopiedAtOnce(result))
          keepResult(builder, result);
    });
  }

  static bool isCopiedAtOnce(OpResult result) {
    auto copy = result.hasOneUse() ? dyn_cast<memref::CopyOp>(*result.user_begin()) : nullptr;
    if (!copy || copy->getBlock() != result.getOwner()->getBlock())
      return false;
    for (Operation *op = result.getOwner()->getNextNode(); op != copy; op = op->getNextNode())
      if (isa<func::CallOp>(op) || op->getNumRegions() != 0)
        return false;
    return true;
  }

  /// Calls `visit` for the users of `value` and of its views.
  static void eachUser(Value value, llvm::function_ref<void(Operation *)> visit) {
    for (Operation *user : value.getUsers())
      if (isa<ViewLikeOpInterface>(user))
        for (Value view : user->getResults())
          eachUser(view, visit);
      else
        visit(user);
  }

  /// An operand of the call, with the type of its result, that is not read after the call until it
  /// is overwritten as a whole in the same block, and the result is no longer read then: the buffer
  /// that a loop carries. Null if there is none.
  static Value findLastUse(OpResult result) {
    Operation *call = result.getOwner();
    for (Value operand : call->getOperands()) {
      if (operand.getType() != result.getType())
        continue;
      bool read = false;
      Operation *written = nullptr; // first overwrite after the call
      eachUser(operand, [&](Operation *user) {
        // Null if the user is outside of the loop.
        Operation *place = call->getBlock()->findAncestorOpInBlock(*user);
        if (!place || !call->isBeforeInBlock(place))
          return;
        auto copy = dyn_cast<memref::CopyOp>(user);
        // A copy to itself does not overwrite the result.
        if (!copy || place != user || copy.getTarget() != operand || copy.getSource() == operand)
          read = true;
        else if (!written || user->isBeforeInBlock(written))
          written = user;
      });
      if (!written || read)
        continue;
      bool outlived = false;
      eachUser(result, [&](Operation *user) {
        Operation *place = call->getBlock()->findAncestorOpInBlock(*user);
        outlived |= !place || written->isBeforeInBlock(place);
      });
      if (!outlived)
        return operand;
    }
    return {};
  }

  // %r = call => %r = call; %own = alloc; copy %r, %own
  static void keepResult(OpBuilder &builder, OpResult result) {
    Location loc = result.getLoc();
    auto type = cast<MemRefType>(result.getType());
    if (Value read = findLastUse(result)) {
      result.replaceAllUsesWith(read);
      memref::CopyOp::create(builder, loc, result, read);
      return;
    }
    SmallVector<Value> extents;
    for (auto [axis, extent] : llvm::enumerate(type.getShape()))
      if (ShapedType::isDynamic(extent))
        extents.push_back(memref::DimOp::create(builder, loc, result, axis));
    Value own = memref::AllocOp::create(builder, loc, type, extents);
    auto copy = memref::CopyOp::create(builder, loc, result, own);
    result.replaceUsesWithIf(own, [&](OpOperand &use) {
      return use.getOwner() != copy && !isa<memref::DimOp>(use.getOwner());
    });
  }

  FailureOr<SmallVector<Buffer>> collect(func::FuncOp function) {
    SmallVector<Buffer> buffers;
    Block &body = function.getBody().front();
    DenseMap<Operation *, unsigned> order;
    for (auto [number, op] : llvm::enumerate(body))
      order[&op] = number;
    WalkResult result = function.walk([&](memref::AllocOp alloc) {
      if (alloc->getBlock() != &body) {
        alloc.emitError("allocates inside a loop or branch, which is not supported");
        return WalkResult::interrupt();
      }
      Buffer buffer{alloc, 1, Extent::Fixed, order[alloc], order[alloc]};
      if (!measure(buffer))
        return WalkResult::interrupt();
      extend(alloc.getResult(), body, order, buffer.last);
      buffers.push_back(buffer);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    return buffers;
  }

  bool measure(Buffer &buffer) {
    MemRefType type = buffer.alloc.getType();
    for (auto [axis, extent] : llvm::enumerate(type.getShape()))
      if (!ShapedType::isDynamic(extent))
        buffer.bytes *= extent;
      else if (axis == 0)
        buffer.extent =
            isNumberOfOutputs(buffer.alloc.getDynamicSizes()[0]) ? Extent::Outputs : Extent::Rows;
      else {
        buffer.alloc.emitError("allocates a buffer whose size is not linear in the number of rows");
        return false;
      }
    buffer.bytes =
        roundUp(buffer.bytes * std::max(8u, type.getElementTypeBitWidth()) / 8, kAlignment);
    return true;
  }

  /// The last operation of the body that uses `value` or a view of it.
  void extend(Value value, Block &body, DenseMap<Operation *, unsigned> &order, unsigned &last) {
    eachUser(value, [&](Operation *user) {
      last = std::max(last, order[body.findAncestorOpInBlock(*user)]);
    });
  }

  /// First fit in the order of allocation, in the region of its extent.
  static Need place(MutableArrayRef<Buffer> buffers) {
    Need need;
    for (size_t i = 0; i < buffers.size(); ++i) {
      Buffer &buffer = buffers[i];
      bool moved = true;
      while (moved) {
        moved = false;
        for (Buffer &other : buffers.take_front(i)) {
          bool together = other.first <= buffer.last && buffer.first <= other.last;
          bool overlap = other.offset < buffer.offset + buffer.bytes &&
                         buffer.offset < other.offset + other.bytes;
          if (other.extent == buffer.extent && together && overlap) {
            buffer.offset = other.offset + other.bytes;
            moved = true;
          }
        }
      }
      int64_t &bytes = need.of(buffer.extent);
      bytes = std::max(bytes, buffer.offset + buffer.bytes);
    }
    return need;
  }

  /// Replaces allocations by views of the scratch memory. Calls get an additional argument: the
  /// memory after the caller's own buffers.
  LogicalResult rewrite(func::FuncOp function, ArrayRef<Buffer> buffers, Need own,
                        ArrayRef<func::CallOp> calls) {
    Value scratch = scratchOf(function);
    OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
    Location loc = function.getLoc();
    FailureOr<Value> rows = rowsOf(function, builder);
    if (failed(rows))
      return failure();
    auto constant = [&](int64_t value) {
      return arith::ConstantIndexOp::create(builder, loc, value).getResult();
    };
    auto multiply = [&](Value count, int64_t bytes) {
      return arith::MulIOp::create(builder, loc, count, constant(bytes)).getResult();
    };
    auto add = [&](Value start, Value bytes) {
      return arith::AddIOp::create(builder, loc, start, bytes).getResult();
    };
    Value outputsStart = multiply(*rows, own.perRow), fixedStart = outputsStart, outputs;
    if (own.perOutput > 0) {
      BlockArgument vector = EntrySignature(function).argument(EntryRole::LogitIndices);
      outputs = memref::DimOp::create(builder, loc, vector, 0);
      fixedStart = add(outputsStart, multiply(outputs, own.perOutput));
    }
    for (Buffer buffer : buffers) {
      builder.setInsertionPoint(buffer.alloc);
      Value offset = buffer.extent == Extent::Rows ? multiply(*rows, buffer.offset)
                     : buffer.extent == Extent::Outputs
                         ? add(outputsStart, multiply(outputs, buffer.offset))
                         : add(fixedStart, constant(buffer.offset));
      Value view = memref::ViewOp::create(builder, buffer.alloc.getLoc(), buffer.alloc.getType(),
                                          scratch, offset, buffer.alloc.getDynamicSizes());
      buffer.alloc.replaceAllUsesWith(view);
      buffer.alloc.erase();
    }
    for (func::CallOp call : calls) {
      auto callee = getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
      if (callee.isExternal())
        continue;
      builder.setInsertionPoint(call);
      Value start = add(fixedStart, constant(own.fixed));
      Value size = arith::SubIOp::create(builder, loc,
                                         memref::DimOp::create(builder, loc, scratch, 0), start);
      Value rest = memref::ViewOp::create(builder, loc, cast<MemRefType>(plainBytes()), scratch,
                                          start, size);
      call->insertOperands(call->getNumOperands(), rest);
    }
    return success();
  }

  /// Whether an argument of a layer function has one row per row of the call.
  static bool hasRows(BlockArgument argument) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    return type && type.isDynamicDim(0) && !type.getElementType().isInteger(8);
  }

  /// The number of rows of a call: of the row vector (by role) of an entry function, else of the
  /// first argument with rows.
  FailureOr<Value> rowsOf(func::FuncOp function, OpBuilder &builder) {
    Value rows = EntrySignature(function).rowVector();
    if (const auto *argument = llvm::find_if(function.getArguments(), hasRows);
        !rows && argument != function.getArguments().end())
      rows = *argument;
    if (!rows)
      return function.emitError("has no argument that determines the number of rows");
    return memref::DimOp::create(builder, function.getLoc(), rows, 0).getResult();
  }

  DenseMap<Operation *, Need> planned;
  DenseSet<Operation *> visited;
};

} // namespace
