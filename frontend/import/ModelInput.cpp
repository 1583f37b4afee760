#include "frontend/import/ModelInput.h"

#include "frontend/config/ConfigReader.h"
#include "frontend/config/gguf/GgufConfig.h"
#include "frontend/config/gguf/GgufTensors.h"
#include "frontend/import/LayerSignature.h"
#include "frontend/import/ModelFile.h"
#include "frontend/import/ModelImporter.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"
#include "ir/Mica/Diagnostics.h"
#include "ir/Mica/StackedExperts.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <functional>
#include <numeric>

using namespace mlir;

namespace mica {

/// The name of a folder, also if the path ends with a slash or a dot; for a snapshot in
/// huggingface_hub's cache, models--OWNER--NAME/snapshots/COMMIT, the name of the model.
static std::string nameOfFolder(llvm::StringRef folder) {
  llvm::SmallString<128> real;
  if (llvm::sys::fs::real_path(folder, real))
    real = folder;
  llvm::StringRef name = llvm::sys::path::filename(real);
  llvm::StringRef snapshots = llvm::sys::path::parent_path(real);
  llvm::StringRef model = llvm::sys::path::filename(llvm::sys::path::parent_path(snapshots));
  if (llvm::sys::path::filename(snapshots) == "snapshots" && model.consume_front("models--"))
    name = model.rsplit("--").second.empty() ? model : model.rsplit("--").second;
  return name.empty() || name == "/" ? "model" : name.str();
}

/// Rejects folders with an adapter (LoRA), which Python code would add to the model, whether or not
/// the model is in the same folder. Adapters are not supported.
static llvm::Error refuseAdapter(llvm::StringRef folder) {
  constexpr llvm::StringLiteral config = "adapter_config.json",
                                hint = "merge it into the model first (merge_and_unload of peft) "
                                       "and pass the saved folder";
  auto pathOf = [&](llvm::StringRef name) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    return path;
  };
  for (llvm::StringRef weights : {"adapter_model.safetensors", "adapter_model.bin"})
    if (auto path = pathOf(weights);
        llvm::sys::fs::exists(path) && !llvm::sys::fs::exists(pathOf(config)))
      return inputError(path, "is a LoRA adapter of an unknown model", hint);
  if (!llvm::sys::fs::exists(pathOf(config)))
    return llvm::Error::success();
  auto object = readJsonObject(pathOf(config));
  if (!object)
    return object.takeError();
  auto base = object->getString("base_model_name_or_path");
  return inputError(pathOf(config),
                    "is a LoRA adapter of " + (base ? inQuotes(*base) : "an unknown model"), hint);
}

namespace {
/// The type in which most elements of matrices are stored.
class MostStored {
public:
  void add(llvm::StringRef type, double bits, double elements) {
    double &count = counts[type];
    count += elements;
    if (dominant.type.empty() || count > counts[dominant.type])
      dominant = {type.str(), bits};
  }

  ModelInput::Storage dominant;

private:
  llvm::StringMap<double> counts;
};
} // namespace

static double elementsOf(llvm::ArrayRef<int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
}

/// Of a folder with block-quantized weights; nothing without them.
static std::optional<ModelInput::Storage> storageOf(const WeightFiles &weights) {
  MostStored stored;
  for (const TensorInfo &tensor : weights.tensors()) {
    double bits = tensor.blocks ? tensor.blocks->bits() : bitsOf(tensor.type);
    if (tensor.shape.size() > 1)
      stored.add(storedNameOf(tensor), bits, elementsOf(tensor.shape));
  }
  if (llvm::none_of(weights.tensors(), [](const TensorInfo &tensor) { return tensor.blocks; }))
    return std::nullopt;
  return stored.dominant;
}

static llvm::Error openWeights(ModelInput &input, WeightsNeeded needed) {
  if (llvm::Error error = refuseAdapter(input.folder))
    return error;
  if (needed == WeightsNeeded::No && !WeightFiles::present(input.folder))
    return llvm::Error::success();
  auto weights = WeightFiles::open(input.folder);
  if (!weights)
    return weights.takeError();
  input.weights = std::move(*weights);
  input.storage = storageOf(*input.weights);
  return llvm::Error::success();
}

/// Without weights, every tensor is assumed to have the type stated in the config.
static void assumeTypes(WeightPlan &plan, StoredType type) {
  for (PlannedWeight *weight : allWeights(plan))
    weight->type = type;
}

/// The final steps, shared by all sources of config and weights.
static llvm::Error finish(MLIRContext &context, ModelInput &input, ModelConfig model,
                          const WeightPlan &plan, llvm::StringRef name) {
  input.module = importModel(context, model, plan, name);
  input.ignoredKeys = model.ignored;
  input.config = std::move(model);
  FirstDiagnostic diagnostics(&context);
  if (failed(verify(*input.module)))
    // No test: the configs that readers accept give IR that verifies.
    return inputError(diagnostics.place(input.folder),
                      diagnostics.message("produced IR that does not verify"),
                      "correct the config");
  return llvm::Error::success();
}

/// Rejects `--keep-mtp` for a model without a multi-token prediction head. Other tensors of such a
/// head than those of one layer are rejected when tensors are matched.
static llvm::Error checkMtp(const ModelInput &input, const ModelConfig &model) {
  constexpr llvm::StringLiteral hint = "leave --keep-mtp out";
  if (!mtpLayerType(model))
    return inputError(model.path,
                      "--keep-mtp: multi-token prediction (MTP) is only supported for Qwen models "
                      "that combine gated delta nets and attention, this is " +
                          model.family,
                      hint);
  if (llvm::any_of(model.layerTypes, followsLength))
    // No test: no family with such a rope has a head.
    return inputError(model.path,
                      "--keep-mtp: multi-token prediction (MTP) is not supported with a rope that "
                      "depends on the length",
                      hint);
  std::string tensor = (model.names->mtp->combine + ".weight").str();
  if (input.weights && !input.weights->find(tensor))
    return inputError(
        input.folder,
        "--keep-mtp: the weights have no multi-token prediction (MTP) head, which has a "
        "tensor " +
            inQuotes(tensor),
        hint);
  return llvm::Error::success();
}

/// Checks the keys about the multi-token prediction head, which are no longer ignored.
static llvm::Error readMtpKeys(ModelConfig &model) {
  for (const MtpKey &key : model.names->mtp->keys) {
    // The config of a text part has names like text_config.KEY.
    auto found = llvm::find_if(model.ignored, [&](const IgnoredKey &row) {
      return llvm::StringRef(row.key).rsplit('.').second == key.name || row.key == key.name;
    });
    if (found == model.ignored.end())
      continue;
    if (found->value != key.value)
      return inputError(found->file,
                        "--keep-mtp: has " + inQuotes(found->key) + ": " + found->value +
                            ", expected " + key.value +
                            ": a multi-token prediction (MTP) head of one layer that uses the "
                            "model's embeddings",
                        "leave --keep-mtp out");
    model.ignored.erase(found);
  }
  return llvm::Error::success();
}

/// The names of the tensors of the head's layer. Qwen3.5 checkpoints with experts store the experts
/// of the model as stacked tensors, but may have separate ones in the head.
static NamingTable namesOfMtpHead(const ModelInput &input, const ModelConfig &model) {
  NamingTable names = *model.names;
  names.layers = names.mtp->layers;
  NamingTable separate = names;
  separate.expert = transformersNames.expert;
  separate.stackedGateUp = separate.stackedDown = "";
  std::string first = llvm::StringRef(separate.expert).split('*').first.str() + "0.";
  std::string tensor = (names.layers + ".0." + first + separate.expertGate + ".weight").str();
  return input.weights && input.weights->find(tensor) ? separate : names;
}

static llvm::Error readFolder(MLIRContext &context, ModelInput &input, WeightsNeeded needed,
                              MtpHead mtp) {
  if (llvm::Error error = openWeights(input, needed))
    return error;
  auto model = readModelConfig(input.folder, input.weights ? &*input.weights : nullptr);
  if (!model)
    return model.takeError();
  if (mtp == MtpHead::Kept) {
    if (llvm::Error error = checkMtp(input, *model))
      return error;
    if (llvm::Error error = readMtpKeys(*model))
      return error;
    model->mtpNames = namesOfMtpHead(input, *model);
  }
  WeightPlan plan = planWeights(*model, mtp);
  if (input.weights) {
    auto ignored = matchTensors(*input.weights, *model, plan);
    if (!ignored)
      return ignored.takeError();
    input.ignoredTensors = std::move(*ignored);
  } else {
    assumeTypes(plan, model->type.value_or(StoredType::F32));
  }
  return finish(context, input, std::move(*model), plan, nameOfFolder(input.folder));
}

/// The type of most elements of the matrices.
static ModelInput::Storage storageOf(const GgufModel &model) {
  MostStored stored;
  for (const GgufTensor &tensor : model.tensors())
    if (tensor.shape.size() > 1)
      stored.add(tensor.type->name, tensor.type->bits(), elementsOf(tensor.shape));
  return stored.dominant;
}

/// Opens the weights of a GGUF file with the tensor names of its family; returns its config.
static llvm::Expected<ModelConfig> openGguf(llvm::StringRef path, ModelInput &input) {
  auto model = GgufModel::open(path);
  if (!model)
    return model.takeError();
  auto config = readGgufConfig(*model);
  if (!config)
    return config.takeError();
  input.storage = storageOf(*model);
  std::vector<TensorInfo> tensors = nameGgufTensors(*model, *config);
  auto weights = WeightFiles::of(path, model->takeFiles(), std::move(tensors));
  if (!weights)
    return inGgufNames(weights.takeError(), *config);
  input.weights = std::move(*weights);
  input.folder = path.str();
  return config;
}

static llvm::Error readGguf(MLIRContext &context, llvm::StringRef path, ModelInput &input) {
  auto config = openGguf(path, input);
  if (!config)
    return config.takeError();
  WeightPlan plan = planWeights(*config);
  auto ignored = matchTensors(*input.weights, *config, plan);
  if (!ignored)
    return inGgufNames(ignored.takeError(), *config);
  input.ignoredTensors = std::move(*ignored);
  if (llvm::Error error = finish(context, input, std::move(*config), plan, ggufName(path)))
    return error;
  input.module.get()->setAttr(kStackedExpertsAttr, UnitAttr::get(&context));
  return llvm::Error::success();
}

/// The folder with the weights of the `.mlir` file at `path`.
static std::string folderOf(llvm::StringRef path) {
  llvm::StringRef parent = llvm::sys::path::parent_path(path);
  std::string own = parent.empty() ? "." : parent.str();
  llvm::StringRef sibling = path.drop_back(llvm::sys::path::extension(path).size());
  if (!WeightFiles::present(own) && llvm::sys::fs::is_directory(sibling))
    return sibling.str();
  return own;
}

/// Opens the weights of the `.mlir` file at `path`: those of a folder or, if there are none, of a
/// GGUF file with the same name.
static llvm::Error openAdjacent(llvm::StringRef path, ModelInput &input, WeightsNeeded needed) {
  input.folder = folderOf(path);
  std::string gguf = (path.drop_back(llvm::sys::path::extension(path).size()) + ".gguf").str();
  if (WeightFiles::present(input.folder) || !isGguf(gguf))
    return openWeights(input, needed);
  auto config = openGguf(gguf, input);
  return config ? llvm::Error::success() : config.takeError();
}

static llvm::Error readFile(MLIRContext &context, llvm::StringRef path, ModelInput &input,
                            WeightsNeeded needed) {
  auto module = parseModelFile(context, path);
  if (!module)
    return module.takeError();
  input.module = std::move(*module);
  if (llvm::Error error = openAdjacent(path, input, needed))
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
                            WeightsNeeded needed, MtpHead mtp) {
  if (llvm::sys::fs::is_directory(path)) {
    input.folder = path.str();
    return readFolder(context, input, needed, mtp);
  }
  if (mtp == MtpHead::Kept)
    return inputError(
        path, "--keep-mtp: multi-token prediction (MTP) is only supported for model folders",
        "pass a model folder, or leave --keep-mtp out");
  if (path.ends_with(".mlir"))
    return readFile(context, path, input, needed);
  if (isGguf(path))
    return readGguf(context, path, input);
  return inputError(
      path,
      llvm::sys::fs::exists(path) ? "is neither a model folder nor a GGUF file nor a .mlir file"
                                  : "does not exist",
      "pass a model folder, a GGUF file, a .mlir file, or OWNER/NAME on the Hugging Face hub");
}

llvm::Expected<ModelInput> readModel(MLIRContext &context, llvm::StringRef path,
                                     WeightsNeeded needed, MtpHead mtp) {
  ModelInput input;
  if (llvm::Error error = readInto(context, path, input, needed, mtp))
    return std::move(error);
  return input;
}

} // namespace mica
