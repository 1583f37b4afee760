#include "frontend/config/gguf/GgufRope.h"

#include "frontend/families/RopeKinds.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"

#include <cmath>
#include <numbers>

namespace mica {
namespace {

constexpr llvm::StringLiteral typeKey = "rope.scaling.type";
constexpr llvm::StringLiteral factorTensor = "rope_freqs.weight";

/// The parameters of Llama 3's scaling in all published models.
constexpr double lowFactor = 1, highFactor = 4;

class RopeScalingReader {
public:
  RopeScalingReader(const GgufKeys &keys, const GgufArchitecture &architecture, double theta)
      : keys(keys), model(keys.model()), architecture(architecture), theta(theta),
        parameters(keys.path()) {}

  llvm::Expected<NamedParameters> read();

private:
  llvm::Expected<const RopeKind *> readKind() const;
  llvm::Error readKeys();
  llvm::Error readKey(const GgufRopeKey &key);
  llvm::Error checkUnused(const GgufRopeKey &key, const llvm::json::Value &value) const;
  llvm::Expected<llvm::SmallVector<double>> factorsOf(const GgufTensor &tensor) const;
  llvm::Error wrong(const GgufTensor &tensor, const llvm::Twine &what) const;
  llvm::Error readFactors(const GgufTensor &tensor);
  llvm::Error readProportional(const GgufTensor &tensor, llvm::ArrayRef<double> factors);
  llvm::Error readFactorTensors();
  llvm::Error rejectOtherTensors() const;
  std::optional<int64_t> fitContext(llvm::ArrayRef<double> factors, double largest) const;
  bool matches(llvm::ArrayRef<double> factors, double largest, double context) const;
  double frequency(size_t index, size_t count) const {
    return std::pow(theta, -static_cast<double>(index) / static_cast<double>(count));
  }

  const GgufKeys &keys;
  const GgufModel &model;
  const GgufArchitecture &architecture;
  double theta;
  const RopeKind *kind = nullptr; ///< by the keys
  NamedParameters parameters;
};

/// A factor without a type means linear scaling; a factor of 0 or 1 means none.
llvm::Expected<const RopeKind *> RopeScalingReader::readKind() const {
  if (const llvm::json::Value *value = keys.find(typeKey)) {
    if (const RopeKind *found = findGgufRopeKind(value->getAsString().value_or("")))
      return found;
    return inputError(keys.path(),
                      "has " + inQuotes(keys.named(typeKey)) + ": " + shown(*value) + ", only " +
                          listRopeKinds([](const RopeKind &kind) { return kind.gguf; }) +
                          " are supported",
                      hints::otherModel);
  }
  for (llvm::StringRef name : {"rope.scaling.factor", "rope.scale_linear"})
    if (const llvm::json::Value *value = keys.find(name))
      if (auto factor = value->getAsNumber(); factor && *factor != 0 && *factor != 1)
        return findRopeKind(kLinearRope);
  for (const RopeKind &kind : ropeKinds())
    if (!kind.ggufFactors.empty() &&
        llvm::all_of(kind.ggufFactors, [&](const RopeFactorTensor &factors) {
          return model.findTensor(factors.name);
        }))
      return &kind;
  return findRopeKind(kUnscaledRope);
}

llvm::Error RopeScalingReader::readKey(const GgufRopeKey &key) {
  std::string name = keys.named(key.name);
  llvm::StringRef type = kind->gguf;
  const llvm::json::Value *value = keys.find(key.name);
  if (!value) {
    if (key.isRequiredBy(type))
      return keys.missingKey(key.name, "which a rope scaling of type " + type + " needs");
    if (key.belongsTo(type) && !parameters.find(key.parameter))
      parameters.expect(key.parameter, name);
    return llvm::Error::success();
  }
  if (!key.belongsTo(type))
    return checkUnused(key, *value);
  if (parameters.find(key.parameter))
    return inputError(keys.path(), "has " + inQuotes(name) + " in addition to another rope factor",
                      "keep one");
  if (key.multiplier == 1) {
    parameters.add(key.parameter, *value, name);
    return llvm::Error::success();
  }
  auto number = readNumber(keys.path(), name, *value, {1e-6, 1e3 / key.multiplier});
  if (!number)
    return number.takeError();
  parameters.add(key.parameter, key.multiplier * *number, name);
  return llvm::Error::success();
}

/// Rejects a key that does not belong to this type of scaling.
llvm::Error RopeScalingReader::checkUnused(const GgufRopeKey &key,
                                           const llvm::json::Value &value) const {
  if (!kind->scales && key.mayBeUnused)
    return llvm::Error::success();
  llvm::StringRef type = kind->gguf;
  llvm::json::Value neutral = llvm::cantFail(llvm::json::parse(key.neutral));
  if (llvm::is_contained(*neutral.getAsArray(), value))
    return llvm::Error::success();
  if (!neutral.getAsArray()->empty())
    return keys.wrongValue(key.name, "one of " + shown(neutral) + " with rope scaling type " + type,
                           hints::otherModel);
  return inputError(keys.path(),
                    "has " + inQuotes(keys.named(key.name)) + ", which a rope scaling of type " +
                        type + " does not have",
                    hints::otherModel);
}

llvm::Error RopeScalingReader::readKeys() {
  for (llvm::ArrayRef<GgufRopeKey> rows : {ggufCommonRopeKeys(), architecture.ropeKeys})
    for (const GgufRopeKey &key : rows)
      if (key.name != typeKey)
        if (llvm::Error error = readKey(key))
          return error;
  parameters.add("rope_type", kind->name, keys.named(typeKey));
  if (kind->addGguf)
    kind->addGguf(architecture, parameters, keys.named(typeKey));
  return readFactorTensors();
}

/// Whether Llama 3's formula produces these factors, which were stored as f32.
bool RopeScalingReader::matches(llvm::ArrayRef<double> factors, double largest,
                                double context) const {
  for (auto [index, factor] : llvm::enumerate(factors)) {
    double turns = context * frequency(index, factors.size()) / (2 * std::numbers::pi), wanted = 1;
    if (turns < lowFactor)
      wanted = largest;
    else if (turns <= highFactor) {
      double smooth = (turns - lowFactor) / (highFactor - lowFactor);
      wanted = 1 / ((1 - smooth) / largest + smooth);
    }
    if (!(std::abs(wanted - factor) <= 1e-5 * wanted))
      return false;
  }
  return true;
}

/// The original context length follows from any factor between 1 and the largest; without such a
/// factor, all lengths between the two limits are equivalent.
std::optional<int64_t> RopeScalingReader::fitContext(llvm::ArrayRef<double> factors,
                                                     double largest) const {
  llvm::SmallVector<double> candidates = {8192};
  double min = 1, max = 1e9;
  for (auto [index, factor] : llvm::enumerate(factors)) {
    double wavelength = 2 * std::numbers::pi / frequency(index, factors.size());
    if (factor <= 1.001)
      min = std::max(min, highFactor * wavelength);
    else if (factor >= largest * 0.999)
      max = std::min(max, lowFactor * wavelength);
    else {
      double smooth = (1 / factor - 1 / largest) / (1 - 1 / largest),
             turns = smooth * (highFactor - lowFactor) + lowFactor;
      candidates.push_back(std::round(turns * wavelength));
    }
  }
  candidates.push_back(std::round(std::sqrt(min * max)));
  for (double context : candidates)
    if (context >= 1 && context < 1e9 && matches(factors, largest, context))
      return static_cast<int64_t>(context);
  return std::nullopt;
}

llvm::Error RopeScalingReader::wrong(const GgufTensor &tensor, const llvm::Twine &what) const {
  return inputError(model.pathOf(tensor), "tensor " + inQuotes(tensor.name) + " " + what,
                    hints::otherModel);
}

llvm::Expected<llvm::SmallVector<double>>
RopeScalingReader::factorsOf(const GgufTensor &tensor) const {
  if (tensor.type->name != "F32" || tensor.shape.size() != 1 || tensor.shape[0] > 2048)
    return wrong(tensor, "must be an F32 vector of up to 2048 rope factors");
  llvm::SmallVector<double> factors;
  for (int64_t i = 0; i < tensor.shape[0]; ++i)
    factors.push_back(llvm::support::endian::read<float, llvm::endianness::little>(
        model.bytes(tensor).data() + i * sizeof(float)));
  return factors;
}

/// Reads the tensors of factors that belong to the kind.
llvm::Error RopeScalingReader::readFactorTensors() {
  for (const auto &[name, parameter] : kind->ggufFactors) {
    const GgufTensor *tensor = model.findTensor(name);
    if (!tensor)
      return inputError(keys.path(),
                        "has no tensor " + inQuotes(name) + ", which a rope scaling of type " +
                            kind->gguf + " needs",
                        hints::otherModel);
    auto factors = factorsOf(*tensor);
    if (!factors)
      return factors.takeError();
    parameters.add(parameter, llvm::json::Array(*factors), name);
  }
  return llvm::Error::success();
}

/// Rejects tensors of factors that belong to other kinds.
llvm::Error RopeScalingReader::rejectOtherTensors() const {
  for (const RopeKind &other : ropeKinds())
    for (const RopeFactorTensor &factors : other.ggufFactors)
      if (const GgufTensor *tensor = model.findTensor(factors.name); tensor && &other != kind)
        return wrong(*tensor, "scales rope, whose scaling is of type " + kind->gguf);
  return llvm::Error::success();
}

/// Reads factors of proportional rope: 1 for the pairs that are rotated, followed by a number that
/// leaves no angle.
llvm::Error RopeScalingReader::readProportional(const GgufTensor &tensor,
                                                llvm::ArrayRef<double> factors) {
  constexpr double none = 1e30;
  size_t pairs = factors.take_while([](double factor) { return factor == 1; }).size();
  if (pairs == 0 || llvm::any_of(factors.drop_front(pairs),
                                 [&](double factor) { return std::abs(factor / none - 1) > 1e-6; }))
    return wrong(tensor, "contains other rope factors than ones followed by 1e30");
  if (kind->scales)
    return wrong(tensor, "scales rope, which its keys do as well");
  parameters.add("rope_type", kProportionalRope, factorTensor);
  parameters.add("partial_rotary_factor",
                 static_cast<double>(pairs) / static_cast<double>(factors.size()), factorTensor);
  return llvm::Error::success();
}

/// Reads factors that Llama 3's formula produces, which files store instead of its parameters.
llvm::Error RopeScalingReader::readFactors(const GgufTensor &tensor) {
  auto read = factorsOf(tensor);
  if (!read)
    return read.takeError();
  llvm::ArrayRef<double> factors = *read;
  if (architecture.proportionalRope)
    return readProportional(tensor, factors);
  if (llvm::all_of(factors, [](double factor) { return factor == 1; }))
    return llvm::Error::success();
  double largest = *llvm::max_element(factors);
  auto context = largest > 1 ? fitContext(factors, largest) : std::nullopt;
  if (!context)
    return wrong(tensor, "contains rope factors that differ from Llama 3's");
  if (kind->scales)
    return wrong(tensor, "scales rope, which its keys do as well");
  std::pair<llvm::StringRef, llvm::json::Value> scaling[] = {
      {"rope_type", kLlama3Rope},
      {"factor", largest},
      {"low_freq_factor", lowFactor},
      {"high_freq_factor", highFactor},
      {"original_max_position_embeddings", *context}};
  for (auto &[parameter, value] : scaling)
    parameters.add(parameter, std::move(value), factorTensor);
  return llvm::Error::success();
}

llvm::Expected<NamedParameters> RopeScalingReader::read() {
  auto found = readKind();
  if (!found)
    return found.takeError();
  kind = *found;
  if (llvm::Error error = readKeys())
    return std::move(error);
  if (llvm::Error error = rejectOtherTensors())
    return std::move(error);
  if (const GgufTensor *factors = model.findTensor(factorTensor))
    if (llvm::Error error = readFactors(*factors))
      return std::move(error);
  return std::move(parameters);
}

} // namespace

llvm::Expected<NamedParameters> readGgufRope(const GgufKeys &keys,
                                             const GgufArchitecture &architecture, double theta) {
  return RopeScalingReader(keys, architecture, theta).read();
}

} // namespace mica
