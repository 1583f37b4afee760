//===- Indices.cpp - layers, weights and experts are in bounds ------------===//
//
// Neither kernels nor the program check layer indices at run time, so they must be proven to be in
// range. Integer ranges are propagated through calls and loops.
//
//===----------------------------------------------------------------------===//

#include "passes/verify/Indices.h"
#include "ir/Mica/Mica.h"

#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlowFramework.h"

using namespace mlir;
using namespace mica;

/// Emits an error unless `index` is in [0, count) whenever `op` runs; `what` names the counted
/// things.
static LogicalResult verifyIndex(const DataFlowSolver &solver, Operation *op, Value index,
                                 int64_t count, StringRef what) {
  const auto *state = solver.lookupState<dataflow::IntegerValueRangeLattice>(index);
  // Unreachable: in a function without calls.
  if (!state || state->getValue().isUninitialized())
    return success();
  const ConstantIntRanges &range = state->getValue().getValue();
  int64_t low = range.smin().getSExtValue(), high = range.smax().getSExtValue();
  if (low >= 0 && high < count)
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError();
  if (low == high)
    diagnostic << "uses " << what << " " << low;
  else if (static_cast<uint64_t>(high) - static_cast<uint64_t>(low) > INT32_MAX)
    diagnostic << "uses a " << what << " index that is not known at compile time";
  else
    diagnostic << "uses " << what << "s " << low << " to " << high;
  return diagnostic << ", but there are " << count << "; valid indices are constants from 0 to "
                    << count - 1;
}

static LogicalResult verifyLayers(const DataFlowSolver &solver, UpdatesState op) {
  for (const StateUpdate &update : op.getStateUpdates())
    if (failed(verifyIndex(solver, op, update.layer,
                           cast<SequenceState>(update.state.getType()).getLayers(), "layer")))
      return failure();
  return success();
}

/// The op that produces `value`, looking through probes.
static Operation *producerOf(Value value) {
  while (auto probe = value.getDefiningOp<ProbeOp>())
    value = probe.getX();
  return value.getDefiningOp();
}

/// The router must choose among as many experts as there are.
static LogicalResult verifyExperts(Operation *op, Value choice, Value weights, Value matrices) {
  auto router = dyn_cast_if_present<RoutesRows>(producerOf(choice));
  int64_t experts = cast<RankedTensorType>(matrices.getType()).getDimSize(0);
  if (!router || (weights && producerOf(weights) != router))
    return op->emitOpError("takes weights and indices of experts that are not results of the same "
                           "mica.moe_gate: use its results, so that the indices are in range");
  int64_t chosenFrom = cast<RankedTensorType>(router.getGate().getType()).getDimSize(0);
  if (chosenFrom == experts)
    return success();
  return op->emitOpError("has ") << experts << " experts, but " << router->getName()
                                 << " chooses among " << chosenFrom;
}

void mica::loadIndexAnalysis(DataFlowSolver &solver) {
  solver.load<dataflow::IntegerRangeAnalysis>();
}

LogicalResult mica::verifyIndices(ModuleOp module, const DataFlowSolver &solver) {
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](ReadsState read) {
          return verifyIndex(solver, op, read.getLayer(),
                             cast<SequenceState>(read.getState().getType()).getLayers(), "layer");
        })
        .Case([&](UpdatesState update) { return verifyLayers(solver, update); })
        .Case([&](SelectsEntry select) {
          return verifyIndex(solver, op, select.getIndex(), select.getNumEntries(),
                             select.getEntryNoun());
        })
        .Case([](MoeExpertsOp op) {
          return verifyExperts(op, op.getExperts(), op.getWeights(), op.getDown());
        })
        .Case([](MoeGateUpOp op) {
          return verifyExperts(op, op.getExperts(), Value(), op.getGate());
        })
        .Case([](MoeDownOp op) {
          return verifyExperts(op, op.getExperts(), op.getWeights(), op.getDown());
        })
        .Default(success());
  });
  return failure(result.wasInterrupted());
}
