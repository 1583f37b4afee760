//===- Checks.cpp - entry functions and legal ops -------------------------===//

#include "passes/verify/Checks.h"
#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/ModelDescription.h"
#include "ir/Mica/RopeFrequencies.h"
#include "passes/verify/CacheIdentity.h"
#include "passes/verify/CacheLinearity.h"
#include "passes/verify/Calls.h"
#include "passes/verify/Indices.h"
#include "passes/verify/Windows.h"

#include "mlir/Analysis/DataFlow/ConstantPropagationAnalysis.h"
#include "mlir/Analysis/DataFlow/DeadCodeAnalysis.h"
#include "mlir/Analysis/DataFlowFramework.h"

using namespace mlir;
using namespace mica;

/// Before stage `loops`, row vectors are tensors and states are caches; entries take nothing else.
static LogicalResult verifyArguments(func::FuncOp entry, const EntrySignature &signature) {
  for (auto [index, type] : llvm::enumerate(entry.getArgumentTypes())) {
    const EntryRoleInfo &info = infoOf(*signature.argumentRole(index));
    bool isTensor = isVector(info.kind) || info.kind == EntryKind::TokenRows;
    if ((isTensor && isa<RankedTensorType>(type)) || isa<SequenceState>(type))
      continue;
    return entry.emitOpError("@") << entry.getSymName() << " takes argument #" << index << ", "
                                  << info.name << ", as " << type << ", which is of stage `loops`";
  }
  return success();
}

static LogicalResult verifyResults(func::FuncOp entry, const EntrySignature &signature) {
  std::optional<unsigned> logits = signature.result(EntryRole::Logits);
  if (!logits)
    return entry.emitOpError("@") << entry.getSymName() << " has no result with " << kEntryRoleAttr
                                  << " = \"logits\"";
  auto rows = dyn_cast<RankedTensorType>(entry.getResultTypes()[*logits]);
  if (!rows || rows.getRank() != 2 || !rows.getElementType().isF32())
    return entry.emitOpError("@") << entry.getSymName() << " returns logits of the type "
                                  << entry.getResultTypes()[*logits]
                                  << ", expected tensor<?xVxf32>";
  BlockArgument hidden = signature.hidden();
  std::optional<unsigned> newHidden = signature.result(EntryRole::Hidden);
  if ((hidden ? hidden.getType() : Type()) !=
      (newHidden ? entry.getResultTypes()[*newHidden] : Type()))
    return entry.emitOpError("@") << entry.getSymName() << " must take and return rows with "
                                  << kEntryRoleAttr << " = \"hidden\", of one type";
  auto taken =
      llvm::map_to_vector(signature.states(), [](BlockArgument state) { return state.getType(); });
  auto returned = llvm::map_to_vector(signature.stateResults(), [&](unsigned index) {
    return Type(entry.getResultTypes()[index]);
  });
  if (taken != returned)
    return entry.emitOpError("@") << entry.getSymName()
                                  << " must return the caches that it takes, in their order";
  return success();
}

static LogicalResult verifyEntry(func::FuncOp entry, bool followsLengths) {
  EntrySignature signature(entry);
  if (failed(signature.verifyComplete()) || failed(verifyArguments(entry, signature)))
    return failure();
  for (const EntryRoleInfo &info : kEntryRoles) {
    bool isFollowed = info.role == EntryRole::Lengths && followsLengths;
    if (!isVector(info.kind) || (info.isOptional && !isFollowed) || signature.argument(info.role))
      continue;
    return entry.emitOpError("@") << entry.getSymName() << " has no argument with "
                                  << kEntryRoleAttr << " = \"" << info.name << "\""
                                  << (isFollowed ? ", which its RoPE scaling requires" : "");
  }
  return verifyResults(entry, signature);
}

LogicalResult mica::verifyEntries(ModuleOp module) {
  bool found = false, followsLengths = !ropeLengthThresholds(module).empty();
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

LogicalResult mica::verifyDescription(ModuleOp module) {
  Attribute model = module->getAttr(kModelAttr);
  return success(!model || succeeded(readModelDescription(model, getVocabulary(module),
                                                          [&] { return module.emitOpError(); })));
}

LogicalResult mica::verifyLegalOps(ModuleOp module, ArrayRef<StringRef> legal, Stage stage) {
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    OperationName name = op->getName();
    if (isa<ModuleOp>(op) || llvm::is_contained(legal, name.getDialectNamespace()) ||
        llvm::is_contained(legal, name.getStringRef()))
      return WalkResult::advance();
    return op->emitOpError("is not allowed at stage `") << getStageInfo(stage).name << "`";
  });
  return failure(result.wasInterrupted());
}

LogicalResult mica::verifyStep(ModuleOp module) {
  if (failed(verifyEntries(module)) || failed(verifyDescription(module)) ||
      failed(promptRowsOf(module)) || failed(verifyNoRecursion(module)) ||
      failed(verifyCachesAreLinear(module)) || failed(verifyCachesReturned(module)) ||
      failed(verifyWindows(module)))
    return failure();
  DataFlowSolver solver;
  solver.load<dataflow::DeadCodeAnalysis>();
  solver.load<dataflow::SparseConstantPropagation>();
  loadIndexAnalysis(solver);
  loadRoleAnalysis(solver);
  // The analyses emit their own errors.
  return failure(failed(solver.initializeAndRun(module)) || failed(verifyIndices(module, solver)) ||
                 failed(verifySingleAppend(module)) || failed(verifyRoles(module, solver)));
}
