#include "frontend/config/gguf/GgufRope.h"

#include "frontend/families/Family.h"
#include "frontend/support/InputError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"

#include <cmath>
#include <numbers>

namespace mica {
namespace {

constexpr llvm::StringLiteral dictionary = "rope_scaling";
constexpr llvm::StringLiteral factorTensor = "rope_freqs.weight",
                              shortTensor = "rope_factors_short.weight",
                              longTensor = "rope_factors_long.weight";

/// A key and what the dictionary calls it; only scalings of `types` have it. Files may say it of
/// models without any scaling as well.
struct RopeKey {
  llvm::StringLiteral name, entry, types;
  bool isAnywhere = false;

  bool belongsTo(llvm::StringRef type) const {
    llvm::SmallVector<llvm::StringRef> those;
    types.split(those, ' ');
    return types.empty() || llvm::is_contained(those, type);
  }
};
constexpr RopeKey keys[] = {
    {"rope.scaling.type", "rope_type", ""},
    {"rope.scaling.factor", "factor", ""},
    {"rope.scale_linear", "factor", "linear"}, // the older name
    {"rope.scaling.original_context_length", "original_max_position_embeddings", "yarn longrope",
     true},
    {"rope.scaling.attn_factor", "attention_factor", "longrope", true},
    {"rope.scaling.yarn_attn_factor", "attention_factor", "yarn"},
    {"rope.scaling.yarn_beta_fast", "beta_fast", "yarn"},
    {"rope.scaling.yarn_beta_slow", "beta_slow", "yarn"},
};

/// The factors of Llama 3 that all published models share.
constexpr double lowFactor = 1, highFactor = 4;

class RopeScalingReader {
public:
  RopeScalingReader(const GgufModel &model, llvm::StringRef architecture,
                    llvm::json::Object &config,
                    std::vector<std::pair<std::string, std::string>> &origins)
      : model(model), architecture(architecture), config(config), origins(origins) {}

  llvm::Error read();

private:
  std::string own(llvm::StringRef name) const { return (architecture + "." + name).str(); }
  const GgufValue *find(llvm::StringRef name) const { return model.find(own(name)); }
  llvm::Expected<std::string> readType();
  llvm::Error readKeys(llvm::StringRef type);
  llvm::Expected<llvm::SmallVector<double>> factorsOf(const GgufTensor &tensor) const;
  llvm::Error wrong(const GgufTensor &tensor, const llvm::Twine &what) const;
  llvm::Error readFactors(const GgufTensor &tensor);
  llvm::Error readLongRope(llvm::json::Object &scaling) const;
  double theta() const;
  std::optional<int64_t> fitContext(llvm::ArrayRef<double> factors, double largest) const;
  bool matches(llvm::ArrayRef<double> factors, double largest, double context) const;
  double frequency(size_t index, size_t count) const {
    return std::pow(theta(), -static_cast<double>(index) / static_cast<double>(count));
  }

  const GgufModel &model;
  llvm::StringRef architecture;
  llvm::json::Object &config;
  std::vector<std::pair<std::string, std::string>> &origins;
};

/// Where the file has a factor and no type, the scaling is linear; a factor of 0 or 1 is none.
llvm::Expected<std::string> RopeScalingReader::readType() {
  bool hasBoth = model.findTensor(shortTensor) && model.findTensor(longTensor);
  if (const GgufValue *value = find("rope.scaling.type")) {
    auto text = value->string();
    if (text && (*text == "none" || *text == "linear" || *text == "yarn" || *text == "longrope"))
      return text->str();
    return inputError(model.path(),
                      "has " + inQuotes(own("rope.scaling.type")) + ": " + value->shown() +
                          ", only none, linear, yarn and longrope are computed",
                      remedy::otherModel);
  }
  for (llvm::StringRef name : {"rope.scaling.factor", "rope.scale_linear"})
    if (const GgufValue *value = find(name))
      if (auto factor = value->number(); factor && *factor != 0 && *factor != 1)
        return "linear";
  return hasBoth ? "longrope" : "none";
}

llvm::Error RopeScalingReader::readKeys(llvm::StringRef type) {
  llvm::json::Object scaling;
  for (const RopeKey &key : keys) {
    const GgufValue *value = find(key.name);
    if (!value || (type == "none" && (key.isAnywhere || key.belongsTo("linear"))))
      continue;
    if (!key.belongsTo(type))
      return inputError(model.path(),
                        "has " + inQuotes(own(key.name)) + ", which a rope scaling of type " +
                            type + " has not",
                        remedy::otherModel);
    if (scaling.get(key.entry))
      return inputError(model.path(),
                        "has " + inQuotes(own(key.name)) + " beside another factor of rope",
                        "keep one");
    origins.emplace_back((dictionary + "." + key.entry).str(), own(key.name));
    if (auto whole = value->integer())
      scaling[key.entry] = *whole;
    else if (auto number = value->number())
      scaling[key.entry] = *number;
    else
      scaling[key.entry] = value->shown();
  }
  if (type == "none")
    return llvm::Error::success();
  if (type == "longrope")
    if (llvm::Error error = readLongRope(scaling))
      return error;
  scaling["rope_type"] = type.str(); // a value keeps no copy of a reference
  config[dictionary] = std::move(scaling);
  return llvm::Error::success();
}

double RopeScalingReader::theta() const {
  const GgufValue *value = find("rope.freq_base");
  double base = value ? value->number().value_or(0) : 10000;
  return base > 0 ? base : 10000;
}

/// Whether Llama 3's formula gives these factors; they were stored as f32.
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

/// Every factor between 1 and the largest tells how long the original context was; where there is
/// none, all between the two borders mean the same.
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
                    remedy::otherModel);
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

/// The factors of short and of long texts.
llvm::Error RopeScalingReader::readLongRope(llvm::json::Object &scaling) const {
  for (auto [name, entry] :
       {std::pair(shortTensor, "short_factor"), std::pair(longTensor, "long_factor")}) {
    const GgufTensor *tensor = model.findTensor(name);
    if (!tensor)
      return inputError(model.path(),
                        "has no tensor " + inQuotes(name) +
                            ", which a rope scaling of type longrope needs",
                        remedy::otherModel);
    auto factors = factorsOf(*tensor);
    if (!factors)
      return factors.takeError();
    scaling[entry] = llvm::json::Array(*factors);
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
  if (config.get(dictionary))
    return wrong(tensor, "scales rope, which its keys do as well");
  config[dictionary] = llvm::json::Object{{"rope_type", "llama3"},
                                          {"factor", largest},
                                          {"low_freq_factor", lowFactor},
                                          {"high_freq_factor", highFactor},
                                          {"original_max_position_embeddings", *context}};
  return llvm::Error::success();
}

llvm::Error RopeScalingReader::read() {
  auto type = readType();
  if (!type)
    return type.takeError();
  if (llvm::Error error = readKeys(*type))
    return error;
  for (llvm::StringRef name : {shortTensor, longTensor})
    if (const GgufTensor *tensor = model.findTensor(name); tensor && *type != "longrope")
      return wrong(*tensor, "scales rope, whose scaling is of type " + llvm::Twine(*type));
  if (const GgufTensor *factors = model.findTensor(factorTensor))
    return readFactors(*factors);
  return llvm::Error::success();
}

} // namespace

bool isGgufRopeKey(llvm::StringRef name) {
  return llvm::any_of(keys, [&](const RopeKey &key) { return key.name == name; });
}

llvm::Error addGgufRopeScaling(const GgufModel &model, llvm::StringRef architecture,
                               llvm::json::Object &config,
                               std::vector<std::pair<std::string, std::string>> &origins) {
  return RopeScalingReader(model, architecture, config, origins).read();
}

} // namespace mica
