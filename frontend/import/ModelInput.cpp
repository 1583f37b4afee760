#include "frontend/import/ModelInput.h"

#include "frontend/config/ConfigReader.h"
#include "frontend/import/ModelFile.h"
#include "frontend/import/ModelImporter.h"
#include "frontend/support/InputError.h"
#include "ir/Mica/Diagnostics.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace mica {

/// The folder's own name, also where the path ends with a slash or a dot.
static std::string nameOfFolder(llvm::StringRef folder) {
  llvm::SmallString<128> real;
  if (llvm::sys::fs::real_path(folder, real))
    real = folder;
  llvm::StringRef name = llvm::sys::path::filename(real);
  return name.empty() || name == "/" ? "model" : name.str();
}

static llvm::Error openWeights(ModelInput &input, WeightsNeeded needed) {
  if (needed == WeightsNeeded::No && !WeightFiles::present(input.folder))
    return llvm::Error::success();
  auto weights = WeightFiles::open(input.folder);
  if (!weights)
    return weights.takeError();
  input.weights = std::move(*weights);
  return llvm::Error::success();
}

/// Without weights every tensor has the type that the config names.
static void assumeTypes(WeightPlan &plan, StoredType type) {
  for (PlannedWeight *weight : allWeights(plan))
    weight->type = type;
}

static llvm::Error readFolder(MLIRContext &context, ModelInput &input, WeightsNeeded needed) {
  if (llvm::Error error = openWeights(input, needed))
    return error;
  auto model = readModelConfig(input.folder, input.weights ? &*input.weights : nullptr);
  if (!model)
    return model.takeError();
  WeightPlan plan = planWeights(*model);
  if (input.weights) {
    auto ignored = matchTensors(*input.weights, *model, plan);
    if (!ignored)
      return ignored.takeError();
    input.ignoredTensors = std::move(*ignored);
  } else {
    assumeTypes(plan, model->type.value_or(StoredType::F32));
  }
  input.module = importModel(context, *model, plan, nameOfFolder(input.folder));
  input.ignoredKeys = std::move(model->ignored);
  FirstDiagnostic diagnostics(&context);
  if (failed(verify(*input.module)))
    return inputError(diagnostics.place(input.folder),
                      diagnostics.message("became IR that does not verify"), "correct the config");
  return llvm::Error::success();
}

/// The folder with the weights of the `.mlir` file at `path`.
static std::string folderOf(llvm::StringRef path) {
  llvm::StringRef parent = llvm::sys::path::parent_path(path);
  std::string own = parent.empty() ? "." : parent.str();
  llvm::StringRef beside = path.drop_back(llvm::sys::path::extension(path).size());
  if (!WeightFiles::present(own) && llvm::sys::fs::is_directory(beside))
    return beside.str();
  return own;
}

static llvm::Error readFile(MLIRContext &context, llvm::StringRef path, ModelInput &input,
                            WeightsNeeded needed) {
  auto module = parseModelFile(context, path);
  if (!module)
    return module.takeError();
  input.module = std::move(*module);
  input.folder = folderOf(path);
  if (llvm::Error error = openWeights(input, needed))
    return error;
  if (!input.weights)
    return llvm::Error::success();
  auto ignored = matchModule(*input.module, *input.weights);
  if (!ignored)
    return ignored.takeError();
  input.ignoredTensors = std::move(*ignored);
  return llvm::Error::success();
}

static llvm::Error readInto(MLIRContext &context, llvm::StringRef path, ModelInput &input,
                            WeightsNeeded needed) {
  if (llvm::sys::fs::is_directory(path)) {
    input.folder = path.str();
    return readFolder(context, input, needed);
  }
  if (path.ends_with(".mlir"))
    return readFile(context, path, input, needed);
  return inputError(path,
                    llvm::sys::fs::exists(path) ? "is neither a model folder nor a .mlir file"
                                                : "does not exist",
                    "name a model folder or a .mlir file");
}

llvm::Expected<ModelInput> readModel(MLIRContext &context, llvm::StringRef path,
                                     WeightsNeeded needed) {
  ModelInput input;
  if (llvm::Error error = readInto(context, path, input, needed))
    return std::move(error);
  return input;
}

} // namespace mica
