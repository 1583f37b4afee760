#include "frontend/import/ModelInput.h"

#include "tests/unit/frontend/TestFolder.h"

#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/MLIRContext.h"

using namespace mica;
using namespace mica::test;

namespace {

std::string printed(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

TEST(Probe, All) {
  for (auto &entry : std::filesystem::directory_iterator(MICA_SOURCE_DIR "/tests/goldens/models")) {
    mlir::MLIRContext context;
    auto input = readModel(context, entry.path().string());
    if (!input) { llvm::errs() << "FAIL " << llvm::toString(input.takeError()) << "\n"; continue; }
    llvm::errs() << "ok " << entry.path().filename().string() << " " << printed(*input->module).size() << "\n";
    if (entry.path().filename() == "minimind2-moe") llvm::errs() << printed(*input->module);
  }
  for (auto &entry : std::filesystem::directory_iterator("/work/shared/configs")) {
    TestFolder folder;
    std::filesystem::copy(entry.path(), folder.path("config.json"));
    mlir::MLIRContext context;
    auto input = readModel(context, folder.path(), WeightsNeeded::No);
    if (!input) { llvm::errs() << "FAIL " << entry.path().filename().string() << llvm::toString(input.takeError()) << "\n"; continue; }
    llvm::errs() << "ok " << entry.path().filename().string() << " " << printed(*input->module).size() << "\n";
  }
}

} // namespace
