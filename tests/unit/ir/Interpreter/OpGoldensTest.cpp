//===- OpGoldensTest.cpp - the interpreter against torch, op by op --------------------===//
//
// Every folder of tests/goldens/ops: a function of one op, its arguments, what torch computes. See
// README there.
//
//===----------------------------------------------------------------------===//

#include "ir/Interpreter/Expect.h"
#include "ir/Interpreter/Npy.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include "gtest/gtest.h"

#include <filesystem>

using namespace mlir;
using namespace mica;
namespace fs = std::filesystem;

namespace {

const fs::path kGoldens = fs::path(MICA_SOURCE_DIR) / "tests" / "goldens" / "ops";

std::vector<std::string> caseNames() {
  std::vector<std::string> names;
  std::error_code missing;
  for (const fs::directory_entry &entry : fs::directory_iterator(kGoldens, missing))
    if (fs::exists(entry.path() / "case.json"))
      names.push_back(entry.path().filename().string());
  llvm::sort(names);
  return names;
}

class OpGoldens : public ::testing::TestWithParam<std::string> {
protected:
  OpGoldens() {
    context.loadDialect<MicaDialect, func::FuncDialect>();
    std::string path = (folder() / "case.json").string();
    auto buffer = llvm::MemoryBuffer::getFile(path);
    llvm::Expected<llvm::json::Value> parsed = llvm::json::parse((*buffer)->getBuffer());
    description = llvm::cantFail(std::move(parsed));
    module = parseSourceFile<ModuleOp>((folder() / "function.mlir").string(), &context);
  }

  fs::path folder() const { return kGoldens / GetParam(); }

  /// The arrays that the case lists under `key`, as tensors of `types`.
  llvm::Expected<SmallVector<interp::Tensor>> read(StringRef key, TypeRange types) {
    SmallVector<interp::Tensor> tensors;
    for (auto [entry, type] : llvm::zip_equal(*description.getAsObject()->getArray(key), types)) {
      StringRef file = *entry.getAsObject()->getString("file");
      llvm::Expected<interp::NpyArray> array = interp::readNpy((folder() / file.str()).string());
      if (!array)
        return array.takeError();
      llvm::Expected<interp::Tensor> tensor = interp::toTensor(*array, getElementTypeOrSelf(type));
      if (!tensor)
        return tensor.takeError();
      tensors.push_back(std::move(*tensor));
    }
    return tensors;
  }

  MLIRContext context;
  llvm::json::Value description = nullptr;
  OwningOpRef<ModuleOp> module;
};

template <typename T> T require(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  ADD_FAILURE() << llvm::toString(value.takeError());
  return T();
}

TEST_P(OpGoldens, EqualsTorch) {
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<func::FuncOp>("main");
  SmallVector<interp::Value> args;
  for (interp::Tensor &tensor : require(read("arguments", function.getArgumentTypes())))
    args.push_back(std::move(tensor));
  SmallVector<interp::Value> results = require(interp::interpret(function, args));
  SmallVector<interp::Tensor> expected = require(read("results", function.getResultTypes()));
  ASSERT_EQ(results.size(), expected.size());
  double tolerance = *description.getAsObject()->getNumber("tolerance");
  for (auto [number, result] : llvm::enumerate(results))
    EXPECT_LE(interp::distance(*result.getTensor(), expected[number]), tolerance)
        << "result " << number;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpGoldens);
INSTANTIATE_TEST_SUITE_P(Torch, OpGoldens, ::testing::ValuesIn(caseNames()), [](const auto &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(OpGoldensThere, AtAll) {
  if (caseNames().empty())
    GTEST_SKIP() << "no goldens of single operations in " << kGoldens;
  EXPECT_GE(caseNames().size(), 30u);
}

} // namespace
