#include "frontend/config/RopeReader.h"

#include "frontend/config/KeyReader.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace mica {
namespace {

constexpr Range positive = {1e-6, 1e6};
constexpr Range factors = {1, 1e6};

/// The first error among `values`; the others are dropped, because an error is one line.
template <typename... T> llvm::Error firstError(llvm::Expected<T> &...values) {
  llvm::Error first = llvm::Error::success();
  auto take = [&](llvm::Error error) {
    if (!first)
      first = std::move(error);
    else
      llvm::consumeError(std::move(error));
  };
  (take(values.takeError()), ...);
  return first;
}

/// Reads rope parameters from a dictionary of config.json or keys of a GGUF file. Records the
/// entries that are read, so that the rest can be reported as unknown.
class RopeReader {
public:
  RopeReader(const Hyperparameters &h, const FamilyTraits &traits, int64_t headDim,
             bool usesSlidingWindow, const KeyNames &names)
      : h(h), traits(traits), headDim(headDim),
        isLocal(usesSlidingWindow && traits.defaultLocalTheta != 0), names(names),
        path(names.path()) {}

  llvm::Expected<RopeConfig> read();

private:
  llvm::Error chooseDictionary();
  llvm::Error readTheta(double &theta);
  llvm::Expected<int64_t> readDimensions();
  llvm::Expected<llvm::StringRef> readType();
  llvm::Expected<RopeScaling> readScaling();
  llvm::Expected<RopeScaling> readLinear();
  llvm::Expected<RopeScaling> readDynamic();
  llvm::Expected<RopeScaling> readLlama3();
  llvm::Expected<RopeScaling> readYarn();
  llvm::Expected<RopeScaling> readOwnYarn();
  llvm::Expected<RopeScaling> readLongRope();
  llvm::Expected<std::vector<double>> factorList(llvm::StringRef key);
  llvm::Expected<double> yarnAttentionFactor(double factor);
  llvm::Error refuseUnknown();
  llvm::Error missing(llvm::StringRef key) const;

  const llvm::json::Value *get(llvm::StringRef key);
  llvm::Expected<double> number(llvm::StringRef key, Range range, std::optional<double> absent);
  llvm::Expected<int64_t> original(std::optional<int64_t> absent);
  std::string named(llvm::StringRef key) const { return parameters->named(key); }

  const Hyperparameters &h;
  const FamilyTraits &traits;
  int64_t headDim, dimensions = 0;
  bool isLocal; ///< for sliding-window layers with a rope of their own
  const KeyNames &names;
  llvm::StringRef path;
  const KeySource *parameters = nullptr;
  std::optional<JsonKeys> dictionary; ///< the source of `parameters` in config.json
  bool isRopeParameters = false;      ///< whether it is rope_parameters of transformers 5
  llvm::StringRef dictionaryName;
  llvm::SmallVector<llvm::StringRef> asked;
  double scoreMultiplier = 1;
};

/// The value of `key`; null: absent or null.
const llvm::json::Value *RopeReader::get(llvm::StringRef key) {
  asked.push_back(key);
  const llvm::json::Value *value = parameters ? parameters->find(key) : nullptr;
  return value && value->kind() == llvm::json::Value::Null ? nullptr : value;
}

llvm::Error RopeReader::missing(llvm::StringRef key) const {
  return parameters->missingKey(key, "which this scaling needs");
}

llvm::Expected<double> RopeReader::number(llvm::StringRef key, Range range,
                                          std::optional<double> absent) {
  if (const llvm::json::Value *value = get(key))
    return readNumber(path, named(key), *value, range);
  if (absent)
    return *absent;
  return missing(key);
}

llvm::Expected<int64_t> RopeReader::original(std::optional<int64_t> absent) {
  constexpr llvm::StringLiteral key = "original_max_position_embeddings";
  if (const llvm::json::Value *value = get(key))
    return readInteger(path, named(key), *value, ranges::positions);
  if (absent)
    return *absent;
  return missing(key);
}

/// Finds the dictionary. transformers 5 may nest it under layer types; rope_scaling of transformers
/// 4 and the keys of a GGUF file apply to layers without a window if layers with a window have
/// different parameters.
llvm::Error RopeReader::chooseDictionary() {
  if (h.ropeKeys) {
    parameters = isLocal ? nullptr : h.ropeKeys;
    return llvm::Error::success();
  }
  bool hasScaling = h.ropeScaling && !h.ropeScaling->empty();
  bool hasParameters = h.ropeParameters && !h.ropeParameters->empty();
  if (hasScaling && hasParameters)
    return inputError(path, "has both \"rope_scaling\" and \"rope_parameters\"", "keep one");
  auto use = [&](const llvm::json::Object *object, llvm::StringRef name) {
    dictionaryName = name;
    isRopeParameters = object && hasParameters;
    if (object)
      parameters = &dictionary.emplace(*object, path, (name + ".").str());
    return llvm::Error::success();
  };
  if (!hasParameters)
    return use(hasScaling && !isLocal ? h.ropeScaling : nullptr, "rope_scaling");
  bool hasTwo = traits.defaultLocalTheta != 0;
  const llvm::json::Object *nested =
      h.ropeParameters->getObject(isLocal ? "sliding_attention" : "full_attention");
  if (!nested && !hasTwo)
    return use(h.ropeParameters, "rope_parameters");
  for (const auto &entry : *h.ropeParameters)
    if (entry.first != "full_attention" && !(hasTwo && entry.first == "sliding_attention"))
      return inputError(path,
                        "has \"rope_parameters\" for several layer types, only " +
                            llvm::Twine(hasTwo ? "full_attention and sliding_attention are"
                                               : "full_attention is") +
                            " supported",
                        hints::otherModel);
  return use(nested,
             isLocal ? "rope_parameters.sliding_attention" : "rope_parameters.full_attention");
}

llvm::Error RopeReader::readTheta(double &theta) {
  std::optional<double> outer = isLocal ? h.localTheta : h.theta;
  auto inner = number("rope_theta", ranges::theta,
                      outer.value_or(isLocal ? traits.defaultLocalTheta : traits.defaultTheta));
  if (!inner)
    return inner.takeError();
  if (outer && *inner != *outer)
    return inputError(path, "has \"rope_theta\" and another " + inQuotes(named("rope_theta")),
                      "keep one");
  theta = *inner;
  return llvm::Error::success();
}

/// int(head_dim * partial_rotary_factor), or the number in the file. Implementations that rotate
/// whole heads ignore a smaller factor if rope is not scaled, and fail if it is.
llvm::Expected<int64_t> RopeReader::readDimensions() {
  if (h.rotatedDim) {
    std::string key = inQuotes(names.keyOf(&Hyperparameters::rotatedDim).value_or(""));
    if (*h.rotatedDim <= headDim && *h.rotatedDim % 2 == 0)
      return *h.rotatedDim;
    return inputError(path,
                      "rotates " + llvm::Twine(*h.rotatedDim) + " of " + llvm::Twine(headDim) +
                          " elements of a head by its " + key + ", but rope rotates pairs of them",
                      hints::correct);
  }
  constexpr llvm::StringLiteral key = "partial_rotary_factor";
  auto part =
      number(key, ranges::share, h.partialRotary.value_or(traits.partialRotary.value_or(1)));
  if (!part)
    return part.takeError();
  if (!traits.partialRotary && *part != 1)
    return inputError(path,
                      "has " + inQuotes(named(key)) + ": " + shown(*get(key)) +
                          ", but the family's code rotates whole heads",
                      "remove it if the model was trained with that code");
  auto dimensions = static_cast<int64_t>(double(headDim) * *part);
  if (dimensions >= 2 && dimensions % 2 == 0)
    return dimensions;
  return inputError(path,
                    "rotates " + llvm::Twine(dimensions) + " of " + llvm::Twine(headDim) +
                        " elements of a head by its partial_rotary_factor, but rope rotates pairs",
                    hints::correct);
}

llvm::Expected<llvm::StringRef> RopeReader::readType() {
  llvm::StringRef type;
  for (llvm::StringRef key : {"rope_type", "type"}) {
    const llvm::json::Value *value = get(key);
    if (!value)
      continue;
    auto text = value->getAsString();
    if (!text || (!type.empty() && type != *text))
      return inputError(path,
                        "has " + inQuotes(named(key)) + ": " + shown(*value) +
                            (type.empty() ? ", expected a name" : ", but \"rope_type\" differs"),
                        type.empty() ? hints::correct : llvm::StringLiteral("keep one"));
    type = *text;
  }
  return type;
}

llvm::Expected<RopeScaling> RopeReader::readLinear() {
  auto factor = number("factor", factors, std::nullopt);
  if (!factor)
    return factor.takeError();
  return LinearScaling{*factor};
}

llvm::Expected<RopeScaling> RopeReader::readDynamic() {
  auto factor = number("factor", factors, std::nullopt);
  if (!factor)
    return factor.takeError();
  // The frequency of a single pair does not depend on theta.
  if (dimensions <= 2)
    return RopeScaling();
  return DynamicScaling{*factor, *h.maxPositions};
}

llvm::Expected<RopeScaling> RopeReader::readLlama3() {
  auto factor = number("factor", factors, std::nullopt);
  if (!factor)
    return factor.takeError();
  auto low = number("low_freq_factor", positive, std::nullopt);
  if (!low)
    return low.takeError();
  auto high = number("high_freq_factor", positive, std::nullopt);
  if (!high)
    return high.takeError();
  auto length = original(std::nullopt);
  if (!length)
    return length.takeError();
  if (*high <= *low)
    return inputError(path,
                      "has a " + inQuotes(named("high_freq_factor")) +
                          " that is not greater than its " + inQuotes(named("low_freq_factor")),
                      hints::correct);
  return Llama3Scaling{*factor, *low, *high, *length};
}

/// As in transformers: the given value, or 0.1 m ln(factor) + 1 for m = mscale, divided by the same
/// for m = mscale_all_dim.
llvm::Expected<double> RopeReader::yarnAttentionFactor(double factor) {
  auto scaleOf = [&](double m) { return factor <= 1 ? 1.0 : 0.1 * m * std::log(factor) + 1; };
  auto mscale = number("mscale", {0, 1e3}, 0.0);
  if (!mscale)
    return mscale.takeError();
  auto allDim = number("mscale_all_dim", {0, 1e3}, 0.0);
  if (!allDim)
    return allDim.takeError();
  if (traits.yarnScalesScores && *allDim != 0)
    scoreMultiplier = scaleOf(*allDim) * scaleOf(*allDim);
  bool both = *mscale != 0 && *allDim != 0;
  return number("attention_factor", positive,
                both ? scaleOf(*mscale) / scaleOf(*allDim) : scaleOf(1));
}

llvm::Expected<RopeScaling> RopeReader::readYarn() {
  auto length = original(h.maxPositions);
  if (!length)
    return length.takeError();
  auto factor = number("factor", factors, double(*h.maxPositions) / double(*length));
  if (!factor)
    return factor.takeError();
  auto fast = number("beta_fast", positive, 32.0), slow = number("beta_slow", positive, 1.0);
  if (llvm::Error error = firstError(fast, slow))
    return std::move(error);
  auto attention = yarnAttentionFactor(*factor);
  if (!attention)
    return attention.takeError();
  const llvm::json::Value *value = get("truncate");
  std::optional<bool> truncate = value ? value->getAsBoolean() : true;
  if (!truncate)
    return inputError(path,
                      "has " + inQuotes(named("truncate")) + ": " + shown(*value) +
                          ", expected true or false",
                      hints::correct);
  if (*fast < *slow)
    return inputError(path,
                      "has a " + inQuotes(named("beta_fast")) + " below its " +
                          inQuotes(named("beta_slow")),
                      hints::correct);
  return YarnScaling{*factor, *fast, *slow, *attention, *length, dimensions - 1, *truncate};
}

llvm::Expected<RopeScaling> RopeReader::readOwnYarn() {
  const OwnYarn &own = *traits.ownYarn;
  auto length = original(own.original);
  if (!length)
    return length.takeError();
  auto factor = number("factor", factors, own.factor), fast = number("beta_fast", positive, 32.0);
  auto slow = number("beta_slow", positive, 1.0);
  auto attention = number("attention_factor", positive, own.attentionFactor);
  if (llvm::Error error = firstError(factor, fast, slow, attention))
    return std::move(error);
  YarnScaling yarn = {*factor, *fast, *slow, *attention, *length, headDim / 2 - 1};
  if (own.check)
    if (llvm::Error error = own.check(yarn, path))
      return std::move(error);
  if (*h.maxPositions <= *length)
    return RopeScaling();
  return yarn;
}

/// Reads a list with a number per pair.
llvm::Expected<std::vector<double>> RopeReader::factorList(llvm::StringRef key) {
  const llvm::json::Value *value = get(key);
  const llvm::json::Array *list = value ? value->getAsArray() : nullptr;
  if (!list || static_cast<int64_t>(list->size()) != dimensions / 2)
    return inputError(path,
                      "has no list of " + llvm::Twine(dimensions / 2) + " numbers in " +
                          inQuotes(named(key)) + ", which this scaling needs",
                      hints::correct);
  std::vector<double> factors;
  for (const llvm::json::Value &item : *list) {
    auto factor = readNumber(path, named(key), item, positive);
    if (!factor)
      return factor.takeError();
    factors.push_back(*factor);
  }
  return factors;
}

llvm::Expected<RopeScaling> RopeReader::readLongRope() {
  auto length = original(h.originalPositions ? h.originalPositions : h.maxPositions);
  if (!length)
    return length.takeError();
  auto factor = number("factor", {1e-6, 1e6}, double(*h.maxPositions) / double(*length));
  if (!factor)
    return factor.takeError();
  double usual = *factor <= 1 ? 1.0 : std::sqrt(1 + std::log(*factor) / std::log(double(*length)));
  auto attention = number("attention_factor", positive, usual);
  if (!attention)
    return attention.takeError();
  auto shortFactors = factorList("short_factor");
  if (!shortFactors)
    return shortFactors.takeError();
  auto longFactors = factorList("long_factor");
  if (!longFactors)
    return longFactors.takeError();
  return LongRopeScaling{*shortFactors, *longFactors, *attention, *length};
}

llvm::Expected<RopeScaling> RopeReader::readScaling() {
  auto type = readType();
  if (!type)
    return type.takeError();
  bool flag = h.yarnFlag.value_or(false);
  if (flag && isRopeParameters)
    return inputError(path, "has both \"inference_rope_scaling\" and \"rope_parameters\"",
                      "keep one");
  if (!parameters)
    return flag ? readOwnYarn() : RopeScaling();
  // Code that implements yarn itself applies it to every rope_scaling; other types would be
  // ambiguous.
  bool isOwn = traits.ownYarn;
  if (*type == "yarn" || (isOwn && !isRopeParameters && type->empty()))
    return isOwn ? readOwnYarn() : readYarn();
  if (*type == "linear" && !isOwn)
    return readLinear();
  if (*type == "llama3" && !isOwn)
    return readLlama3();
  if ((*type == "longrope" || *type == "su") && !isOwn)
    return readLongRope();
  if (*type == "dynamic" && !isOwn)
    return readDynamic();
  if (*type == "default" || (type->empty() && isRopeParameters))
    return RopeScaling();
  if (type->empty())
    return missing("rope_type");
  return inputError(
      path,
      "has the rope scaling " + inQuotes(*type) + " in " + inQuotes(dictionaryName) + ", only " +
          (isOwn ? "default and yarn" : "default, linear, dynamic, yarn, longrope and llama3") +
          " are supported",
      hints::otherModel);
}

llvm::Error RopeReader::refuseUnknown() {
  if (!parameters)
    return llvm::Error::success();
  for (llvm::StringRef key : parameters->keys())
    if (!llvm::is_contained(asked, key))
      return inputError(
          path, "has the key " + inQuotes(named(key)) + ", which is unknown for its scaling",
          "remove it if it has no effect");
  return llvm::Error::success();
}

llvm::Expected<RopeConfig> RopeReader::read() {
  RopeConfig rope;
  rope.pairing = traits.pairing;
  if (h.interleaved)
    rope.pairing = *h.interleaved ? Pairing::Interleaved : Pairing::Half;
  if (llvm::Error error = chooseDictionary())
    return std::move(error);
  auto rotated = readDimensions();
  if (!rotated)
    return rotated.takeError();
  rope.dimensions = dimensions = *rotated;
  if (llvm::Error error = readTheta(rope.theta))
    return std::move(error);
  auto scaling = readScaling();
  if (!scaling)
    return scaling.takeError();
  rope.scaling = *scaling;
  rope.scoreMultiplier = scoreMultiplier;
  if (traits.imagePositions)
    asked.append({"mrope_section", "mrope_interleaved"});
  if (llvm::Error error = refuseUnknown())
    return std::move(error);
  return rope;
}

} // namespace

llvm::Expected<RopeConfig> readRope(const Hyperparameters &h, const FamilyTraits &traits,
                                    int64_t headDim, bool usesSlidingWindow,
                                    const KeyNames &names) {
  return RopeReader(h, traits, headDim, usesSlidingWindow, names).read();
}

} // namespace mica
