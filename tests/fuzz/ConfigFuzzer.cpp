#include "frontend/config/ConfigReader.h"
#include "frontend/config/GenerationReader.h"
#include "frontend/import/ModelImporter.h"
#include "frontend/support/Json.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

#include <cstdlib>

/// An accepted config must produce valid IR. Large ones only cost time.
static void import(const mica::ModelConfig &model) {
  if (model.layers.size() > 4)
    return;
  for (const mica::LayerType &kind : model.layerTypes)
    if (auto *sparse = std::get_if<mica::SparseConfig>(&kind.ffn); sparse && sparse->experts > 16)
      return;
  static mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mica::importModel(context, model, mica::planWeights(model), "fuzz");
  if (mlir::failed(mlir::verify(*module)))
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto value = mica::parseJson({reinterpret_cast<const char *>(data), size}, "fuzz");
  if (!value) {
    llvm::consumeError(value.takeError());
    return 0;
  }
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return 0;
  mica::GenerationDefaults defaults;
  std::vector<mica::IgnoredKey> ignored;
  llvm::consumeError(mica::readGeneration(mica::JsonKeys(*object, "fuzz"), defaults, ignored));
  auto model = mica::modelConfigFrom(*object, "fuzz", nullptr);
  if (model)
    import(*model);
  else
    llvm::consumeError(model.takeError());
  return 0;
}
