//===- ReferenceModel.cpp - a model that the interpreter runs -------------===//

#include "tools/verify/ReferenceModel.h"

#include "ir/Mica/Diagnostics.h"
#include "ir/Mica/EntrySignature.h"
#include "passes/support/Phases.h"
#include "tools/support/CheckpointWeights.h"

#include "mlir/Pass/PassManager.h"

#include <set>

using namespace llvm;

namespace mica::tool {

mlir::DialectRegistry ReferenceModel::registry() {
  mlir::DialectRegistry registry;
  cpu::registerCompilerDialects(registry);
  return registry;
}

Expected<std::unique_ptr<ReferenceModel>> ReferenceModel::open(const std::string &model,
                                                               StringRef asked, StageOptions stages,
                                                               PromptRows promptRows, Roles roles,
                                                               MtpHead mtp) {
  std::unique_ptr<ReferenceModel> opened(new ReferenceModel());
  FirstDiagnostic diagnostic(&opened->context);
  Expected<ModelInput> input = readModel(opened->context, model, WeightsNeeded::Yes, mtp);
  if (!input)
    return input.takeError();
  opened->input = std::move(*input);
  cpu::CompileOptions options;
  options.weights = precisionNamed(asked);
  if (opened->input.storage)
    cpu::chooseWeights(options, opened->input.storage->bits);
  stages.preserveBlocks = options.preserveBlocks;
  stages.probes = Probed::Results;
  setPromptRows(*opened->input.module, promptRows);
  mlir::PassManager pm(&opened->context);
  buildModelToFused(pm, stages);
  if (failed(pm.run(*opened->input.module)))
    return createStringError(model + ": " + diagnostic.message("cannot be fused"));
  mlir::Type rows =
      promptRowType(&opened->context, promptRows, stages.exactRows.value_or(ExactRows::BF16));
  if (roles == Roles::Separate && dependsOnRole(*opened->input.module, rows)) {
    mlir::PassManager phases(&opened->context);
    buildPhases(phases, stages);
    if (failed(phases.run(*opened->input.module)))
      return createStringError(model + ": " + diagnostic.message("cannot be specialized"));
  }
  return std::move(opened);
}

StringRef nameOf(rt::RowRole role) {
  return role == rt::RowRole::Prompt ? kPromptRole : kDecodeRole;
}

/// The function for rows of that role.
mlir::func::FuncOp ReferenceModel::entryOf(rt::RowRole role) const {
  mlir::ModuleOp module = *input.module;
  if (auto main = module.lookupSymbol<mlir::func::FuncOp>("main"))
    return main;
  StringRef name = nameOf(role);
  for (auto function : module.getOps<mlir::func::FuncOp>())
    if (function.isPublic() && rowRoleOf(function) == name && !function->hasAttr(kMaxRowsAttr))
      return function;
  llvm_unreachable("a role without a function for any number of rows");
}

Expected<std::vector<interp::Value>> ReferenceModel::makeInputs(mlir::func::FuncOp entry,
                                                                ArrayRef<int32_t> ids) const {
  mlir::Type i32 = mlir::IntegerType::get(&context, 32);
  auto count = static_cast<int64_t>(ids.size());
  auto numbers = [&](auto number) {
    interp::Tensor tensor = interp::Tensor::zeros(i32, {count});
    for (int64_t i = 0; i < count; ++i)
      tensor.ints[static_cast<size_t>(i)] = number(i);
    return interp::Value(std::move(tensor));
  };
  auto own = [](int64_t i) { return i; };
  std::vector<interp::Value> inputs;
  for (auto [index, type] : enumerate(entry.getArgumentTypes())) {
    switch (*EntrySignature(entry).argumentRole(index)) {
    case EntryRole::Tokens:
      inputs.push_back(numbers([&](int64_t i) { return ids[static_cast<size_t>(i)]; }));
      break;
    case EntryRole::Sequences:
      inputs.push_back(numbers([](int64_t) { return 0; }));
      break;
    case EntryRole::Positions:
    case EntryRole::LogitIndices:
      inputs.push_back(numbers(own));
      break;
    case EntryRole::Lengths:
      inputs.push_back(numbers([&](int64_t) { return count; }));
      break;
    case EntryRole::Cache: {
      auto state = cast<SequenceState>(type);
      if (Error error = interp::checkSize(interp::extentsOf(state, 1, count)))
        return std::move(error);
      inputs.push_back(interp::Value::makeCache(state, 1, count));
      break;
    }
    case EntryRole::Hidden:
      inputs.push_back(
          interp::Tensor::zeros(mlir::Float32Type::get(&context),
                                {count, cast<mlir::RankedTensorType>(type).getDimSize(1)}));
      break;
    case EntryRole::Weights:
    case EntryRole::Scratch:
    case EntryRole::Logits:
      llvm_unreachable("stage `fused` takes no memory");
    }
  }
  return inputs;
}

Expected<std::vector<float>> ReferenceModel::logits(ArrayRef<int32_t> ids, rt::RowRole role,
                                                    interp::TraceHook trace) const {
  mlir::func::FuncOp entry = entryOf(role);
  Expected<std::vector<interp::Value>> inputs = makeInputs(entry, ids);
  if (!inputs)
    return inputs.takeError();
  auto weights = [&](StringRef name) { return storedTensor(*input.weights, name, &context); };
  Expected<SmallVector<interp::Value>> results =
      interp::interpret(entry, *inputs, weights, std::move(trace));
  if (!results)
    return results.takeError();
  return (*results)[*EntrySignature(entry).result(EntryRole::Logits)].getTensor()->floats;
}

SmallVector<int64_t> ReferenceModel::windows() const {
  std::set<int64_t> windows;
  mlir::ModuleOp module = *input.module;
  module.walk([&](AttentionOp attention) {
    if (auto window = attention.getWindow())
      windows.insert(static_cast<int64_t>(*window));
  });
  return {windows.begin(), windows.end()};
}

} // namespace mica::tool
