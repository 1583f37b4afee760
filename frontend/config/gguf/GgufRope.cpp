#include "frontend/config/gguf/GgufRope.h"

#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"

#include <cmath>
#include <numbers>

namespace mica {
namespace {

constexpr llvm::StringLiteral typeKey = "rope.scaling.type";
constexpr llvm::StringLiteral factorTensor = "rope_freqs.weight",
                              shortTensor = "rope_factors_short.weight",
                              longTensor = "rope_factors_long.weight";

/// The parameters of Llama 3's scaling in all published models.
constexpr double lowFactor = 1, highFactor = 4;

class RopeScalingReader {
public:
  RopeScalingReader(const GgufKeys &keys, const GgufArchitecture &architecture, double theta)
      : keys(keys), model(keys.model()), architecture(architecture), theta(theta),
        parameters(keys.path()) {}

  llvm::Expected<NamedParameters> read();

private:
  llvm::Expected<std::string> readType() const;
  llvm::Error readKeys();
  llvm::Error readKey(const GgufRopeKey &key);
  llvm::Error checkUnused(const GgufRopeKey &key, const llvm::json::Value &value) const;
  llvm::Expected<llvm::SmallVector<double>> factorsOf(const GgufTensor &tensor) const;
  llvm::Error wrong(const GgufTensor &tensor, const llvm::Twine &what) const;
  llvm::Error readFactors(const GgufTensor &tensor);
  llvm::Error readLongRope();
  std::optional<int64_t> fitContext(llvm::ArrayRef<double> factors, double largest) const;
  bool matches(llvm::ArrayRef<double> factors, double largest, double context) const;
  double frequency(size_t index, size_t count) const {
    return std::pow(theta, -static_cast<double>(index) / static_cast<double>(count));
  }

  const GgufKeys &keys;
  const GgufModel &model;
  const GgufArchitecture &architecture;
  double theta;
  std::string type; ///< "none" if the keys describe no scaling
  NamedParameters parameters;
};

/// A factor without a type means linear scaling; a factor of 0 or 1 means none.
llvm::Expected<std::string> RopeScalingReader::readType() const {
  if (const llvm::json::Value *value = keys.find(typeKey)) {
    auto text = value->getAsString();
    if (text && (*text == "none" || *text == "linear" || *text == "yarn" || *text == "longrope"))
      return text->str();
    return inputError(keys.path(),
                      "has " + inQuotes(keys.named(typeKey)) + ": " + shown(*value) +
                          ", only none, linear, yarn and longrope are supported",
                      hints::otherModel);
  }
  for (llvm::StringRef name : {"rope.scaling.factor", "rope.scale_linear"})
    if (const llvm::json::Value *value = keys.find(name))
      if (auto factor = value->getAsNumber(); factor && *factor != 0 && *factor != 1)
        return "linear";
  return model.findTensor(shortTensor) && model.findTensor(longTensor) ? "longrope" : "none";
}

llvm::Error RopeScalingReader::readKey(const GgufRopeKey &key) {
  std::string name = keys.named(key.name);
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
    return inputError(keys.path(), "has " + inQuotes(name) + " beside another factor of rope",
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
  if (type == "none" && key.mayBeUnused)
    return llvm::Error::success();
  llvm::json::Value neutral = llvm::cantFail(llvm::json::parse(key.neutral));
  if (llvm::is_contained(*neutral.getAsArray(), value))
    return llvm::Error::success();
  if (!neutral.getAsArray()->empty())
    return keys.wrongValue(key.name,
                           "one of " + shown(neutral) + " beside a rope scaling of type " + type,
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
  parameters.add("rope_type", type == "none" ? "default" : type, keys.named(typeKey));
  if (type == "yarn" && !architecture.truncatesYarn)
    parameters.add("truncate", false, keys.named(typeKey));
  return type == "longrope" ? readLongRope() : llvm::Error::success();
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
  double least = 1, most = 1e9;
  for (auto [index, factor] : llvm::enumerate(factors)) {
    double wavelength = 2 * std::numbers::pi / frequency(index, factors.size());
    if (factor <= 1.001)
      least = std::max(least, highFactor * wavelength);
    else if (factor >= largest * 0.999)
      most = std::min(most, lowFactor * wavelength);
    else {
      double smooth = (1 / factor - 1 / largest) / (1 - 1 / largest),
             turns = smooth * (highFactor - lowFactor) + lowFactor;
      candidates.push_back(std::round(turns * wavelength));
    }
  }
  candidates.push_back(std::round(std::sqrt(least * most)));
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
    return wrong(tensor, "is not the vector of F32 that scales rope");
  llvm::SmallVector<double> factors;
  for (int64_t i = 0; i < tensor.shape[0]; ++i)
    factors.push_back(llvm::support::endian::read<float, llvm::endianness::little>(
        model.bytes(tensor).data() + i * sizeof(float)));
  return factors;
}

/// Reads the factors for short and for long sequences.
llvm::Error RopeScalingReader::readLongRope() {
  for (auto [name, entry] :
       {std::pair(shortTensor, "short_factor"), std::pair(longTensor, "long_factor")}) {
    const GgufTensor *tensor = model.findTensor(name);
    if (!tensor)
      return inputError(keys.path(),
                        "has no tensor " + inQuotes(name) +
                            ", which a rope scaling of type longrope needs",
                        hints::otherModel);
    auto factors = factorsOf(*tensor);
    if (!factors)
      return factors.takeError();
    parameters.add(entry, llvm::json::Array(*factors), name);
  }
  return llvm::Error::success();
}

llvm::Error RopeScalingReader::readFactors(const GgufTensor &tensor) {
  auto read = factorsOf(tensor);
  if (!read)
    return read.takeError();
  llvm::ArrayRef<double> factors = *read;
  if (llvm::all_of(factors, [](double factor) { return factor == 1; }))
    return llvm::Error::success();
  double largest = *llvm::max_element(factors);
  auto context = largest > 1 ? fitContext(factors, largest) : std::nullopt;
  if (!context)
    return wrong(tensor, "scales rope by factors that are not those of Llama 3");
  if (type != "none")
    return wrong(tensor, "scales rope, which its keys do as well");
  std::pair<llvm::StringRef, llvm::json::Value> scaling[] = {
      {"rope_type", "llama3"},
      {"factor", largest},
      {"low_freq_factor", lowFactor},
      {"high_freq_factor", highFactor},
      {"original_max_position_embeddings", *context}};
  for (auto &[parameter, value] : scaling)
    parameters.add(parameter, std::move(value), factorTensor);
  return llvm::Error::success();
}

llvm::Expected<NamedParameters> RopeScalingReader::read() {
  auto found = readType();
  if (!found)
    return found.takeError();
  type = std::move(*found);
  if (llvm::Error error = readKeys())
    return std::move(error);
  for (llvm::StringRef name : {shortTensor, longTensor})
    if (const GgufTensor *tensor = model.findTensor(name); tensor && type != "longrope")
      return wrong(*tensor, "scales rope, whose scaling is of type " + llvm::Twine(type));
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
