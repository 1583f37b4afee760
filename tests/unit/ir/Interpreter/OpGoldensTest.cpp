//===- OpGoldensTest.cpp - interpreted ops compared with torch ------------===//
//
// Every folder of tests/goldens/ops: a function of one op, its arguments, and torch's results. See
// the README there.
//
//===----------------------------------------------------------------------===//

#include "ir/Interpreter/Expect.h"
#include "ir/Interpreter/Npy.h"
#include "tests/unit/Paths.h"

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

template <typename T> T require(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  ADD_FAILURE() << llvm::toString(value.takeError());
  return T();
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

  /// The arrays listed by the case under `key`, as tensors of `types`.
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

  /// Runs the function; returns the error of each of its results.
  std::vector<double> distances() {
    auto function = module->lookupSymbol<func::FuncOp>("main");
    SmallVector<interp::Value> args;
    for (interp::Tensor &tensor : require(read("arguments", function.getArgumentTypes())))
      args.push_back(std::move(tensor));
    SmallVector<interp::Value> results = require(interp::interpret(function, args));
    SmallVector<interp::Tensor> expected = require(read("results", function.getResultTypes()));
    EXPECT_GE(expected.size(), 1u);
    EXPECT_EQ(results.size(), expected.size());
    std::vector<double> off;
    for (auto [result, wanted] : llvm::zip(results, expected))
      off.push_back(interp::distance(*result.getTensor(), wanted));
    return off;
  }

  double tolerance() const { return *description.getAsObject()->getNumber("tolerance"); }

  MLIRContext context;
  llvm::json::Value description = nullptr;
  OwningOpRef<ModuleOp> module;
};

TEST_P(OpGoldens, EqualsTorch) {
  ASSERT_TRUE(module);
  for (auto [number, off] : llvm::enumerate(distances()))
    EXPECT_LE(off, tolerance()) << "result " << number;
}

/// The two orders of a norm in bf16: rounding before or after the multiplication by the weight.
class NormOrder : public OpGoldens {};

TEST_P(NormOrder, AWrongOrderIsDetected) {
  ASSERT_TRUE(module);
  module->walk([](RmsNormOp norm) {
    bool before = norm.getRounding() == NormRounding::BeforeWeight;
    norm.setRounding(before ? NormRounding::AfterWeight : NormRounding::BeforeWeight);
  });
  for (double off : distances())
    EXPECT_GT(off, tolerance() + 1e-3) << "a step of bf16 is at least 2^-9 of the largest value";
}

INSTANTIATE_TEST_SUITE_P(Torch, OpGoldens, ::testing::ValuesIn(caseNames()), [](const auto &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

INSTANTIATE_TEST_SUITE_P(Torch, NormOrder,
                         ::testing::Values("rmsnorm-bf16-before-weight",
                                           "rmsnorm-bf16-after-weight"),
                         [](const auto &info) {
                           return info.param.find("before") == std::string::npos ? "after_weight"
                                                                                 : "before_weight";
                         });

// A wrong path must not result in a test without cases.
TEST(OpGoldenFiles, Exist) { EXPECT_GE(caseNames().size(), 50u) << kGoldens; }

} // namespace
