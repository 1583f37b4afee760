#include "tests/unit/frontend/import/GoldenModel.h"
#include "tools/support/CheckpointWeights.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mica::test {

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
  bool follows = takesLengths(main.getFunctionType());
  for (mlir::Type type : main.getArgumentTypes().drop_front(follows ? 5 : 4))
    caches.push_back(interp::Value::makeCache(llvm::cast<KvCacheType>(type), 1, tokens.size()));
  std::vector<float> logits;
  for (size_t first = 0; first < tokens.size(); first += chunk) {
    llvm::ArrayRef<int64_t> part = tokens.slice(first, std::min(chunk, tokens.size() - first));
    std::vector<int64_t> zeros(part.size(), 0), positions, rows;
    for (size_t i = 0; i < part.size(); ++i) {
      rows.push_back(i);
      positions.push_back(first + i);
    }
    llvm::SmallVector<interp::Value> arguments{indices(context, part), indices(context, zeros),
                                               indices(context, positions), indices(context, rows)};
    std::vector<int64_t> own(part.size(), tokens.size());
    if (!lengths.empty())
      own = lengths.slice(first, part.size()).vec();
    if (follows)
      arguments.push_back(indices(context, own));
    llvm::append_range(arguments, caches);
    auto results = interpreter.run(main, arguments);
    if (!results)
      return results.takeError();
    llvm::append_range(logits, (*results)[0].getTensor()->floats);
    for (auto [cache, next] : llvm::zip_equal(caches, llvm::drop_begin(*results)))
      cache = next.clone();
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
