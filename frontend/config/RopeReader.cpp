#include "frontend/config/RopeReader.h"

#include "frontend/config/KeyReader.h"
#include "frontend/families/RopeKinds.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

namespace mica {
namespace {

class RopeReader {
public:
  RopeReader(const Hyperparameters &h, const FamilyTraits &traits, int64_t headDim,
             bool usesSlidingWindow, const KeyNames &names)
      : h(h), traits(traits), headDim(headDim),
        isLocal(usesSlidingWindow && traits.defaultLocalTheta != 0), names(names),
        path(names.path()) {}

  llvm::Expected<RopeConfig> read();

private:
  llvm::Expected<const KeySource *> chooseSource();
  llvm::Error readTheta(double &theta);
  llvm::Expected<int64_t> readDimensions();
  llvm::Expected<llvm::StringRef> readType();
  llvm::Expected<const RopeKind *> kindOf(llvm::StringRef type) const;
  llvm::Error readScaling(RopeConfig &rope);

  std::string named(llvm::StringRef key) const { return parameters->named(key); }

  const Hyperparameters &h;
  const FamilyTraits &traits;
  int64_t headDim;
  bool isLocal; ///< for sliding-window layers with a rope of their own
  const KeyNames &names;
  llvm::StringRef path;
  std::optional<JsonKeys> dictionary; ///< the source of `parameters` in config.json
  llvm::StringRef dictionaryName;
  bool isRopeParameters = false; ///< whether it is rope_parameters of transformers 5
  std::optional<RopeParameters> parameters;
};

/// Finds the dictionary or the keys; null: there are none. transformers 5 may nest the dictionary
/// under layer types; rope_scaling of transformers 4 and the keys of a GGUF file apply to layers
/// without a window if layers with a window have different parameters.
llvm::Expected<const KeySource *> RopeReader::chooseSource() {
  if (h.ropeKeys)
    return isLocal ? nullptr : h.ropeKeys;
  bool hasScaling = h.ropeScaling && !h.ropeScaling->empty();
  bool hasParameters = h.ropeParameters && !h.ropeParameters->empty();
  if (hasScaling && hasParameters)
    return inputError(path, "has both \"rope_scaling\" and \"rope_parameters\"", "keep one");
  auto use = [&](const llvm::json::Object *object, llvm::StringRef name) -> const KeySource * {
    dictionaryName = name;
    isRopeParameters = object && hasParameters;
    return object ? &dictionary.emplace(*object, path, (name + ".").str()) : nullptr;
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
  auto inner =
      parameters->number("rope_theta", ranges::theta,
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
/// whole heads ignore a smaller factor if rope is not scaled, and fail if it is. Kinds that read
/// the factor themselves have the pairs of a whole head.
llvm::Expected<int64_t> RopeReader::readDimensions() {
  auto type = readType();
  if (!type)
    return type.takeError();
  if (const RopeKind *kind = findRopeKind(*type);
      kind && kind->readsShare && kind->supports(traits))
    return headDim;
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
  auto part = parameters->number(key, ranges::share,
                                 h.partialRotary.value_or(traits.partialRotary.value_or(1)));
  if (!part)
    return part.takeError();
  if (!traits.partialRotary && *part != 1)
    return inputError(path,
                      "has " + inQuotes(named(key)) + ": " + shown(*parameters->get(key)) +
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
    const llvm::json::Value *value = parameters->get(key);
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

/// The kind with this name, or by the rules for parameters without one.
llvm::Expected<const RopeKind *> RopeReader::kindOf(llvm::StringRef type) const {
  if (const RopeKind *kind = findRopeKind(type); kind && kind->supports(traits))
    return kind;
  // Code that implements yarn itself applies it to every rope_scaling; other types would be
  // ambiguous.
  if (type.empty() && traits.ownYarn && !isRopeParameters)
    return findRopeKind(kYarnRope);
  if (type.empty() && isRopeParameters)
    return findRopeKind(kUnscaledRope);
  if (type.empty())
    return parameters->missing("rope_type");
  return inputError(path,
                    "has the rope scaling " + inQuotes(type) + " in " + inQuotes(dictionaryName) +
                        ", only " + listRopeKinds([&](const RopeKind &kind) -> llvm::StringRef {
                          return kind.supports(traits) ? llvm::StringRef(kind.name)
                                                       : llvm::StringRef();
                        }) +
                        " are supported",
                    hints::otherModel);
}

llvm::Error RopeReader::readScaling(RopeConfig &rope) {
  auto type = readType();
  if (!type)
    return type.takeError();
  bool flag = h.yarnFlag.value_or(false);
  if (flag && isRopeParameters)
    return inputError(path, "has both \"inference_rope_scaling\" and \"rope_parameters\"",
                      "keep one");
  if (parameters->isEmpty() && !flag)
    return llvm::Error::success();
  // Without parameters, the flag alone requests yarn.
  auto kind = kindOf(parameters->isEmpty() ? llvm::StringRef(kYarnRope) : *type);
  if (!kind)
    return kind.takeError();
  return (*kind)->readInto(rope, *parameters, {h, traits, headDim});
}

llvm::Expected<RopeConfig> RopeReader::read() {
  RopeConfig rope;
  rope.pairing = traits.pairing;
  if (h.interleaved)
    rope.pairing = *h.interleaved ? Pairing::Interleaved : Pairing::Half;
  auto source = chooseSource();
  if (!source)
    return source.takeError();
  parameters.emplace(path, *source);
  auto rotated = readDimensions();
  if (!rotated)
    return rotated.takeError();
  rope.dimensions = *rotated;
  if (llvm::Error error = readTheta(rope.theta))
    return std::move(error);
  if (llvm::Error error = readScaling(rope))
    return std::move(error);
  if (traits.imagePositions)
    parameters->accept({"mrope_section", "mrope_interleaved"});
  if (llvm::Error error = parameters->rejectUnknown())
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
