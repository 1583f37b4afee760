#include "tests/unit/frontend/import/GoldenModel.h"
#include "ir/Mica/EntrySignature.h"
#include "tools/support/CheckpointWeights.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;

namespace mica::test {

std::vector<std::string> goldenNames() {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(goldens()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

static interp::Value indices(MLIRContext &context, llvm::ArrayRef<int64_t> values) {
  interp::Tensor tensor =
      interp::Tensor::zeros(IntegerType::get(&context, 32), {int64_t(values.size())});
  tensor.ints.assign(values.begin(), values.end());
  return tensor;
}

llvm::Expected<std::vector<float>> logitsOf(const ModelInput &model, llvm::ArrayRef<int64_t> tokens,
                                            size_t chunk, llvm::StringRef entry,
                                            llvm::ArrayRef<int64_t> lengths) {
  ModuleOp module = const_cast<OwningOpRef<ModuleOp> &>(model.module).get();
  MLIRContext &context = *module.getContext();
  interp::Interpreter interpreter(
      module, [&](llvm::StringRef name) { return storedTensor(*model.weights, name, &context); });
  auto main = module.lookupSymbol<func::FuncOp>(entry);
  llvm::SmallVector<interp::Value> caches;
  EntrySignature signature(main);
  for (BlockArgument state : signature.states())
    caches.push_back(
        interp::Value::makeCache(llvm::cast<SequenceState>(state.getType()), 1, tokens.size()));
  std::vector<float> logits;
  for (size_t first = 0; first < tokens.size(); first += chunk) {
    llvm::ArrayRef<int64_t> part = tokens.slice(first, std::min(chunk, tokens.size() - first));
    std::vector<int64_t> zeros(part.size(), 0), positions, rows;
    for (size_t i = 0; i < part.size(); ++i) {
      rows.push_back(i);
      positions.push_back(first + i);
    }
    std::vector<int64_t> own(part.size(), tokens.size());
    if (!lengths.empty())
      own = lengths.slice(first, part.size()).vec();
    llvm::SmallVector<interp::Value> arguments(main.getNumArguments());
    auto give = [&](EntryRole role, llvm::ArrayRef<int64_t> values) {
      if (BlockArgument argument = signature.argument(role))
        arguments[argument.getArgNumber()] = indices(context, values);
    };
    give(EntryRole::Tokens, part);
    give(EntryRole::Sequences, zeros);
    give(EntryRole::Positions, positions);
    give(EntryRole::LogitIndices, rows);
    give(EntryRole::Lengths, own);
    for (auto [state, cache] : llvm::zip_equal(signature.states(), caches))
      arguments[state.getArgNumber()] = cache;
    auto results = interpreter.run(main, arguments);
    if (!results)
      return results.takeError();
    llvm::append_range(logits,
                       (*results)[*signature.result(EntryRole::Logits)].getTensor()->floats);
    for (auto [cache, next] : llvm::zip_equal(caches, signature.stateResults()))
      cache = (*results)[next].clone();
  }
  return logits;
}

double distance(llvm::ArrayRef<float> a, llvm::ArrayRef<float> b) {
  if (a.size() != b.size() || a.empty())
    return std::numeric_limits<double>::infinity();
  double difference = 0, largest = 0;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    difference = std::max(difference, std::abs(double(x) - y));
    largest = std::max(largest, std::abs(double(y)));
  }
  return std::isfinite(difference) && largest > 0 ? difference / largest
                                                  : std::numeric_limits<double>::infinity();
}

} // namespace mica::test
