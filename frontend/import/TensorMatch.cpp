#include "frontend/import/TensorMatch.h"

#include "frontend/config/Quantization.h"
#include "frontend/families/IrrelevantKeys.h"
#include "frontend/support/InputError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

namespace mica {
namespace {

class Matcher {
public:
  Matcher(const WeightFiles &weights, const ModelConfig &model, WeightPlan &plan)
      : weights(weights), model(model), plan(plan) {}

  llvm::Expected<std::vector<IgnoredTensor>> match();

private:
  void findOtherNames();
  llvm::Error matchWeight(PlannedWeight &weight);
  llvm::Error matchAll();
  llvm::Error checkTiedHead(const TensorInfo &head) const;
  std::optional<std::pair<int64_t, llvm::StringRef>> splitLayer(llvm::StringRef name) const;
  bool isNextnPredictLayer(llvm::StringRef name) const;
  bool isOfSharedCache(llvm::StringRef name) const;
  llvm::Expected<IgnoredTensor> classifyUnexpectedTensor(const TensorInfo &tensor) const;

  const WeightFiles &weights;
  const ModelConfig &model;
  WeightPlan &plan;
  llvm::StringSet<> needed;
};

/// The embedding of a tied model may only be stored as the head, and any tensor without the name of
/// the base module, if the files were saved from that.
void Matcher::findOtherNames() {
  llvm::StringRef base = model.names->baseModel();
  std::string head = (model.names->head + ".weight").str();
  for (PlannedWeight *weight : allWeights(plan))
    for (TensorPart &source : weight->sources) {
      llvm::StringRef other = source.tensor;
      if (!base.empty() && other.consume_front(base) && !weights.find(source.tensor) &&
          weights.find(other))
        source.tensor = other.str();
    }
  std::string &embedding = plan.embedding.sources.front().tensor;
  if (model.tiedHead && !weights.find(embedding) && weights.find(head))
    embedding = head;
}

llvm::Error Matcher::matchWeight(PlannedWeight &weight) {
  const TensorInfo *first = nullptr;
  for (const TensorPart &source : weight.sources) {
    auto tensor = findSource(weights, source, weight.shapeOf(source),
                             static_cast<int64_t>(weight.sources.size()));
    if (!tensor)
      return tensor.takeError();
    if (!first)
      first = *tensor;
    else if (first->type != (*tensor)->type || first->blocks != (*tensor)->blocks)
      return inputError(
          weights.pathOf(**tensor),
          "tensor " + inQuotes(source.text()) + " has the type " + storedNameOf(**tensor) +
              ", but " + inQuotes(weight.sources.front().text()) + " has " + storedNameOf(*first),
          "convert the experts to one type");
    weight.type = first->type;
    weight.blocks = first->blocks ? first->blocks->format : nullptr;
    needed.insert(source.tensor);
    if (const TensorInfo *scales = weights.scalesOf(**tensor))
      needed.insert(scales->name);
  }
  return llvm::Error::success();
}

llvm::Error Matcher::matchAll() {
  for (PlannedWeight *weight : allWeights(plan))
    if (llvm::Error error = matchWeight(*weight))
      return error;
  return llvm::Error::success();
}

/// The head of a tied model may be stored again, but it must be the embedding.
llvm::Error Matcher::checkTiedHead(const TensorInfo &head) const {
  const TensorInfo &embedding = *weights.find(plan.embedding.sources.front().tensor);
  llvm::ArrayRef<uint8_t> a = weights.bytes(head), b = weights.bytes(embedding);
  bool isSame = head.type == embedding.type && head.shape == embedding.shape && a == b;
  weights.release(head);
  weights.release(embedding);
  if (isSame)
    return llvm::Error::success();
  return inputError(weights.pathOf(head),
                    "tensor " + inQuotes(head.name) + " differs from " + inQuotes(embedding.name) +
                        ", but the config says that they are one",
                    "set \"tie_word_embeddings\" to false if they are not");
}

/// The index of the layer in whose modules the tensor is, and its name within the layer; nullopt:
/// it is outside of layers.
std::optional<std::pair<int64_t, llvm::StringRef>> Matcher::splitLayer(llvm::StringRef name) const {
  int64_t layer;
  llvm::StringRef base = model.names->baseModel();
  if (!base.empty())
    name.consume_front(base);
  if (!name.consume_front(model.names->layers.drop_front(base.size())) ||
      !name.consume_front(".") || name.consumeInteger(10, layer) || !name.consume_front("."))
    return std::nullopt;
  return std::pair(layer, name);
}

/// Whether the tensor belongs to a multi-token prediction layer, after those that are computed.
bool Matcher::isNextnPredictLayer(llvm::StringRef name) const {
  auto split = splitLayer(name);
  auto layers = static_cast<int64_t>(model.layers.size());
  return split && split->first >= layers && split->first < layers + model.numNextnPredictLayers;
}

/// Whether the tensor would compute keys or values of a layer that reads those of an earlier one.
bool Matcher::isOfSharedCache(llvm::StringRef name) const {
  auto split = splitLayer(name);
  if (!split || split->first < 0 || split->first >= static_cast<int64_t>(model.layers.size()) ||
      !model.layerTypes[model.layers[split->first]].attention.sharesCache)
    return false;
  const NamingTable &names = *model.names;
  llvm::StringRef module = split->second.rsplit('.').first;
  return llvm::is_contained({names.key, names.value, names.keyNorm}, module);
}

llvm::Expected<IgnoredTensor> Matcher::classifyUnexpectedTensor(const TensorInfo &tensor) const {
  if (model.tiedHead && tensor.name == (model.names->head + ".weight").str()) {
    if (llvm::Error error = checkTiedHead(tensor))
      return std::move(error);
    return IgnoredTensor{tensor.name, "equal to the embedding, byte for byte"};
  }
  if (isNextnPredictLayer(tensor.name))
    return IgnoredTensor{tensor.name, "is for multi-token prediction (MTP)"};
  if (isOfSharedCache(tensor.name))
    return IgnoredTensor{tensor.name,
                         "has no effect: the layer reads keys and values of an earlier one"};
  if (plan.mtp && llvm::StringRef(tensor.name).starts_with(model.names->mtp->prefix))
    return inputError(weights.pathOf(tensor),
                      "tensor " + inQuotes(tensor.name) + " " + shown(tensor.shape) +
                          " does not belong to a supported multi-token prediction (MTP) head, "
                          "which has one layer and uses the model's embeddings",
                      "leave --keep-mtp out");
  if (model.names->mtp && llvm::StringRef(tensor.name).starts_with(model.names->mtp->prefix))
    return IgnoredTensor{tensor.name, "is for multi-token prediction (MTP), see --keep-mtp"};
  if (auto reason = reasonTensorIsIrrelevant(tensor.name))
    return IgnoredTensor{tensor.name, reason->str()};
  return inputError(weights.pathOf(tensor),
                    "tensor " + inQuotes(tensor.name) + " " + shown(tensor.shape) +
                        " does not belong to " + model.family +
                        ", the config does not describe this model",
                    "download the config and the weights of one model");
}

llvm::Expected<std::vector<IgnoredTensor>> Matcher::match() {
  findOtherNames();
  if (llvm::Error error = matchAll())
    return std::move(error);
  std::vector<IgnoredTensor> ignored;
  for (const TensorInfo &tensor : weights.tensors()) {
    if (needed.contains(tensor.name))
      continue;
    auto classified = classifyUnexpectedTensor(tensor);
    if (!classified)
      return classified.takeError();
    ignored.push_back(std::move(*classified));
  }
  llvm::sort(ignored,
             [](const IgnoredTensor &a, const IgnoredTensor &b) { return a.name < b.name; });
  return ignored;
}

/// A tensor that identifies the quantization method of a matrix.
struct QuantizedForm {
  std::string tensor;
  llvm::StringRef method;
};

/// The tensors that a quantized checkpoint has instead of NAME.weight or in addition to it.
std::optional<QuantizedForm> quantizedForm(const WeightFiles &weights, llvm::StringRef name) {
  static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> forms[] = {
      {".qweight", "GPTQ or AWQ"},
      {".qzeros", "GPTQ or AWQ"},
      {".biases", "MLX"},
      {".scales", "GPTQ or AWQ"},
      {".weight_packed", "compressed-tensors"},
      {".weight_scale", "compressed-tensors"},
      {".weight_scale_inv", "fp8"},
      {".weight.absmax", "bitsandbytes"},
      {".SCB", "bitsandbytes"},
  };
  if (!name.consume_back(".weight"))
    return std::nullopt;
  for (const auto &[ending, method] : forms) {
    std::string tensor = (name + ending).str();
    // Only GPTQ reorders columns.
    if (weights.find(tensor))
      return QuantizedForm{tensor, weights.find((name + ".g_idx").str()) ? "GPTQ" : method};
  }
  return std::nullopt;
}

} // namespace

llvm::Expected<const TensorInfo *> findSource(const WeightFiles &weights, const TensorPart &source,
                                              llvm::ArrayRef<int64_t> shape,
                                              std::optional<int64_t> entries) {
  const TensorInfo *tensor = weights.find(source.tensor);
  int64_t has = tensor && !tensor->shape.empty() ? tensor->shape.front() : 0,
          count = std::max(entries.value_or(has), source.entry.value_or(-1) + 1);
  return findTensor(weights, source.tensor, source.shapeAround(shape, count));
}

llvm::Expected<const TensorInfo *> findTensor(const WeightFiles &weights, llvm::StringRef name,
                                              llvm::ArrayRef<int64_t> shape) {
  const TensorInfo *tensor = weights.find(name);
  if (std::optional<QuantizedForm> form = quantizedForm(weights, name))
    return quantizedError(weights.folder(),
                          "tensor " + inQuotes(name) + " is quantized by " + form->method +
                              " (there is " + inQuotes(form->tensor) + "), which is not supported");
  if (!tensor)
    return inputError(weights.folder(),
                      "tensor " + inQuotes(name) + " " + shown(shape) + " is missing",
                      "download the weights again");
  if (!isStoredAs(tensor->shape, shape))
    return inputError(weights.pathOf(*tensor),
                      "tensor " + inQuotes(name) + " has the shape " + shown(tensor->shape) +
                          ", expected " + shown(shape),
                      "download the config and the weights of one model");
  bool isRead = tensor->blocks
                    ? tensor->blocks->format != nullptr
                    : tensor->type == StoredType::F32 || tensor->type == StoredType::BF16 ||
                          tensor->type == StoredType::F16;
  if (!isRead)
    return inputError(
        weights.pathOf(*tensor),
        "tensor " + inQuotes(name) + " has the type " + storedNameOf(*tensor) + ", only " +
            (tensor->blocks ? readableTypeNames() : "F64, F32, BF16 and F16") + " are supported",
        "convert the weights to one of them");
  // Rows of a vector would be parts of a block.
  if (tensor->blocks && shape.size() < 2)
    return inputError(weights.pathOf(*tensor),
                      "tensor " + inQuotes(name) + " is a vector of type " + storedNameOf(*tensor) +
                          ", but only matrices may be in blocks",
                      "convert it to F32");
  return tensor;
}

llvm::Expected<std::vector<IgnoredTensor>>
matchTensors(const WeightFiles &weights, const ModelConfig &model, WeightPlan &plan) {
  return Matcher(weights, model, plan).match();
}

} // namespace mica
