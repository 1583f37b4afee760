//===- Checks.cpp - entry functions and living ops -------------------------------===//

#include "passes/verify/Checks.h"
#include "ir/Mica/ModelDescription.h"

#include "mlir/Analysis/DataFlow/ConstantPropagationAnalysis.h"
#include "mlir/Analysis/DataFlow/DeadCodeAnalysis.h"
#include "mlir/Analysis/DataFlowFramework.h"

using namespace mlir;
using namespace mica;

/// tensor<?xT> for the index vectors, tensor<?xVxf32> for the logits.
static bool isRows(Type type, size_t rank, Type element) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType() == element &&
         static_cast<size_t>(tensor.getRank()) == rank && tensor.isDynamicDim(0) &&
         (rank == 1 || !tensor.isDynamicDim(1));
}

static LogicalResult verifyEntry(func::FuncOp entry, bool followsLengths) {
  Builder builder(entry.getContext());
  ArrayRef<Type> inputs = entry.getFunctionType().getInputs(),
                 results = entry.getFunctionType().getResults();
  size_t vectors = takesLengths(entry.getFunctionType()) ? 5 : 4;
  bool fits = inputs.size() >= vectors && results.size() == inputs.size() - vectors + 1 &&
              (vectors == 5 || !followsLengths) &&
              isRows(results.front(), 2, builder.getF32Type()) &&
              results.drop_front() == inputs.drop_front(vectors) &&
              llvm::all_of(results.drop_front(), llvm::IsaPred<KvCacheType>) &&
              llvm::all_of(inputs.take_front(vectors),
                           [&](Type type) { return isRows(type, 1, builder.getI32Type()); });
  if (fits)
    return success();
  return entry.emitOpError("@")
         << entry.getSymName() << " must be (tokens, sequences, positions, outputs"
         << (followsLengths ? ", lengths" : "")
         << " : tensor<?xi32>, caches...) -> (logits : tensor<?xVxf32>, the same caches...)"
         << (followsLengths ? ": a scaling of mica.rope follows the lengths" : "");
}

LogicalResult mica::verifyEntries(ModuleOp module) {
  bool found = false, followsLengths = !lengthBorders(module).empty();
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      return function.emitOpError("@") << function.getSymName() << " has no body";
    if (function.isPrivate())
      continue;
    found = true;
    if (failed(verifyEntry(function, followsLengths)))
      return failure();
  }
  if (!found)
    return module.emitOpError(
        "has no public function @main, which is where a step of the model starts");
  return success();
}

int64_t mica::getVocabulary(ModuleOp module) {
  int64_t vocabulary = 0;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic())
      vocabulary = std::max(
          vocabulary, cast<RankedTensorType>(function.getResultTypes().front()).getDimSize(1));
  return vocabulary;
}

LogicalResult mica::verifyDescription(ModuleOp module) {
  Attribute model = module->getAttr("mica.model");
  return success(!model || succeeded(readModelDescription(model, getVocabulary(module),
                                                          [&] { return module.emitOpError(); })));
}

LogicalResult mica::verifyAlive(ModuleOp module, ArrayRef<StringRef> alive, StringRef stage) {
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    OperationName name = op->getName();
    if (isa<ModuleOp>(op) || llvm::is_contained(alive, name.getDialectNamespace()) ||
        llvm::is_contained(alive, name.getStringRef()))
      return WalkResult::advance();
    return op->emitOpError("is not allowed at stage `") << stage << "`";
  });
  return failure(result.wasInterrupted());
}

LogicalResult mica::verifyStep(ModuleOp module) {
  if (failed(verifyEntries(module)) || failed(verifyDescription(module)) ||
      failed(promptRowsOf(module)) || failed(verifyCallsEnd(module)) ||
      failed(verifyCachesAreLinear(module)) || failed(verifyCachesComeBack(module)))
    return failure();
  DataFlowSolver solver;
  solver.load<dataflow::DeadCodeAnalysis>();
  solver.load<dataflow::SparseConstantPropagation>();
  loadIndexAnalysis(solver);
  loadRoleAnalysis(solver);
  // The analyses report themselves what they cannot follow.
  return failure(failed(solver.initializeAndRun(module)) || failed(verifyIndices(module, solver)) ||
                 failed(verifyLayersAreWrittenOnce(module)) || failed(verifyRoles(module, solver)));
}
