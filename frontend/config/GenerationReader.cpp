#include "frontend/config/GenerationReader.h"

#include "frontend/config/KeyReader.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"

namespace mica {
namespace {

using G = GenerationDefaults;

/// The keys are named as the entries of `mica.model`.
struct NumberKey {
  NumberBounds bounds;
  std::optional<double> G::*slot;
};

constexpr NumberKey numberKeys[] = {
    {bounds::temperature, &G::temperature},
    {bounds::topP, &G::topP},
    {bounds::minP, &G::minP},
    {bounds::typicalP, &G::typicalP},
    {bounds::repetitionPenalty, &G::repetitionPenalty},
};

/// What transformers and vLLM have beside these, each with a neutral value: 0, 1 or nothing.
constexpr llvm::StringLiteral otherChoices[] = {
    "bad_words_ids",
    "begin_suppress_tokens",
    "diversity_penalty",
    "dola_layers",
    "encoder_no_repeat_ngram_size",
    "encoder_repetition_penalty",
    "epsilon_cutoff",
    "eta_cutoff",
    "exponential_decay_length_penalty",
    "force_words_ids",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "frequency_penalty",
    "guidance_scale",
    "logit_bias",
    "min_length",
    "min_new_tokens",
    "no_repeat_ngram_size",
    "num_beams",
    "penalty_alpha",
    "presence_penalty",
    "sequence_bias",
    "stop_strings",
    "suppress_tokens",
    "top_h",
    "watermarking_config",
};

bool choosesTokens(llvm::StringRef key) { return llvm::is_contained(otherChoices, key); }

bool isNeutral(const llvm::json::Value &value) {
  if (auto number = value.getAsNumber())
    return *number == 0 || *number == 1;
  if (auto flag = value.getAsBoolean())
    return !*flag;
  const llvm::json::Array *list = value.getAsArray();
  const llvm::json::Object *object = value.getAsObject();
  return (list && list->empty()) || (object && object->empty());
}

constexpr Range rangeOf(const NumberBounds &bounds) { return {bounds.least, bounds.most}; }

llvm::Error readIds(llvm::StringRef path, llvm::StringRef key, const llvm::json::Value &value,
                    std::vector<int64_t> &ids) {
  ids.clear();
  llvm::SmallVector<llvm::json::Value> items;
  if (const llvm::json::Array *list = value.getAsArray())
    llvm::append_range(items, *list);
  else
    items.push_back(value);
  for (const llvm::json::Value &item : items) {
    auto id = readInteger(path, key, item, ranges::token);
    if (!id)
      return id.takeError();
    ids.push_back(*id);
  }
  return llvm::Error::success();
}

llvm::Error readInto(std::optional<int64_t> &slot, llvm::Expected<int64_t> value) {
  if (!value)
    return value.takeError();
  slot = *value;
  return llvm::Error::success();
}

llvm::Error readKey(llvm::StringRef path, llvm::StringRef key, const llvm::json::Value &value,
                    GenerationDefaults &defaults, std::vector<IgnoredKey> &ignored) {
  for (const NumberKey &rule : numberKeys)
    if (rule.bounds.name == key) {
      auto number = readNumber(path, key, value, rangeOf(rule.bounds));
      if (!number)
        return number.takeError();
      defaults.*rule.slot = *number;
      return llvm::Error::success();
    }
  if (key == bounds::topK.name)
    return readInto(defaults.topK, readInteger(path, key, value, rangeOf(bounds::topK)));
  if (key == "bos_token_id")
    return readInto(defaults.bos, readInteger(path, key, value, ranges::token));
  if (key == "eos_token_id")
    return readIds(path, key, value, defaults.eos);
  if (key != "do_sample") {
    bool missed = choosesTokens(key) && !isNeutral(value);
    ignored.push_back({path.str(), key.str(),
                       missed ? "changes which tokens are chosen, and programs do not know it"
                              : "is not a setting that the program samples by",
                       missed});
    return llvm::Error::success();
  }
  auto flag = value.getAsBoolean();
  if (!flag)
    return inputError(path, "has \"do_sample\": " + shown(value) + ", expected true or false",
                      remedy::correct);
  defaults.doSample = *flag;
  return llvm::Error::success();
}

} // namespace

llvm::Error readGeneration(const llvm::json::Object &object, llvm::StringRef path,
                           GenerationDefaults &defaults, std::vector<IgnoredKey> &ignored) {
  llvm::SmallVector<llvm::StringRef> keys;
  for (const auto &entry : object)
    keys.push_back(entry.first);
  llvm::sort(keys);
  for (llvm::StringRef key : keys) {
    const llvm::json::Value &value = *object.get(key);
    if (value.kind() == llvm::json::Value::Null)
      continue;
    if (llvm::Error error = readKey(path, key, value, defaults, ignored))
      return error;
  }
  return llvm::Error::success();
}

} // namespace mica
