#include "frontend/families/GgufKeys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/GlobPattern.h"

namespace mica {

llvm::json::Value valueOf(const GgufValue &value) {
  if (auto whole = value.integer())
    return *whole;
  if (auto number = value.number())
    return *number;
  if (auto flag = value.boolean())
    return *flag;
  if (auto text = value.string())
    return llvm::json::fixUTF8(*text);
  if (auto integers = value.integers(); integers && !integers->empty()) {
    if (llvm::all_equal(*integers))
      return integers->front();
    return llvm::json::Array(*integers);
  }
  if (auto flags = value.booleans(); flags && !flags->empty()) {
    if (llvm::all_equal(*flags))
      return bool(flags->front());
    return llvm::json::Array(*flags);
  }
  return value.shown();
}

GgufKeys::GgufKeys(const GgufModel &model, llvm::StringRef architecture)
    : KeySource(model.path()), ggufModel(model), prefix((architecture + ".").str()) {
  for (const auto &entry : model.metadata())
    if (llvm::StringRef key = entry.getKey(); key.consume_front(prefix))
      values.emplace(key.str(), valueOf(entry.getValue()));
}

std::vector<llvm::StringRef> GgufKeys::keys() const {
  std::vector<llvm::StringRef> keys;
  for (const auto &[key, _] : values)
    keys.push_back(key);
  return keys;
}

const llvm::json::Value *GgufKeys::find(llvm::StringRef key) const {
  auto found = values.find(key.str());
  return found == values.end() ? nullptr : &found->second;
}

llvm::Error subtractGgufNextnLayers(const GgufKeys &keys, Hyperparameters &h) {
  int64_t all = *h.layers;
  h.layers = all - *h.numNextnPredictLayers;
  if (*h.layers < 1)
    return keys.wrongValue("nextn_predict_layers",
                           "fewer than its " + llvm::Twine(all) + " layers");
  return llvm::Error::success();
}

llvm::Error checkGgufGroups(const GgufKeys &keys, const Hyperparameters &h, bool isOpen) {
  llvm::StringRef lacking = h.groups.value_or(1) > 1 && !h.topkGroup ? "expert_group_used_count"
                            : !h.groups && isOpen                    ? "expert_group_count"
                                                                     : "";
  if (lacking.empty())
    return llvm::Error::success();
  return inputError(keys.path(),
                    "has no key " + inQuotes(keys.named(lacking)) +
                        ", so the expert groups of this model cannot be determined",
                    "use a file written by a newer converter");
}

llvm::ArrayRef<FixedKey> ggufCommonFixedKeys() {
  static constexpr FixedKey keys[] = {
      {"attention.causal", "[true]"},
      {"use_parallel_residual", "[false]"},
      // A dense model may state explicitly that it has no experts.
      {"expert_count", "[0]"},
      {"expert_used_count", "[0]"},
  };
  return keys;
}

llvm::ArrayRef<IgnoredKeyRow> ggufCommonIgnoredKeys() {
  static constexpr IgnoredKeyRow keys[] = {
      // Compared with the model's shape if no rule reads them.
      {"attention.head_count_kv", reasons::used},
      {"attention.key_length", reasons::used},
      {"attention.value_length", reasons::used},
      {"rope.dimension_count", reasons::used},
      {"rope.scaling.finetuned", "describes how the model was trained"},
      {"tensor_data_layout", "describes how an older tool stored the original"},
      {"vocab_size", "the rows of the embedding are used instead"},
  };
  return keys;
}

std::optional<llvm::StringRef> reasonGgufKeyIsIrrelevant(llvm::StringRef key) {
  constexpr llvm::StringLiteral bookkeeping = "describes the origin of the file";
  static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> rows[] = {
      {"general.architecture", reasons::used},
      {"general.alignment", reasons::used},
      {"general.file_type", "summarizes the types that each tensor states"},
      {"general.sampling.*", "not a supported sampling setting"},
      {"general.*", bookkeeping},
      {"quantize.*", bookkeeping},
      {"imatrix.*", bookkeeping},
      {"mradermacher.*", bookkeeping},
      {"split.*", "describes how the file was split"},
  };
  for (auto [pattern, reason] : rows)
    if (llvm::cantFail(llvm::GlobPattern::create(pattern)).match(key))
      return reason;
  return std::nullopt;
}

} // namespace mica
