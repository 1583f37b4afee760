#include "frontend/families/RopeKinds.h"

#include "frontend/families/RopeScaling.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace mica {

constexpr Range positive = {1e-6, 1e6};
constexpr Range factors = {1, 1e6};

/// The first error among `values`; the others are dropped, because an error is one line.
template <typename... T> static llvm::Error firstError(llvm::Expected<T> &...values) {
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

//===----------------------------------------------------------------------===//
// default: no scaling
//===----------------------------------------------------------------------===//

static llvm::Error readDefault(RopeParameters &, const RopeModel &, RopeConfig &) {
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// linear
//===----------------------------------------------------------------------===//

static llvm::Error readLinear(RopeParameters &parameters, const RopeModel &, RopeConfig &rope) {
  auto factor = parameters.number("factor", factors);
  if (!factor)
    return factor.takeError();
  rope.scaling = LinearScaling{*factor};
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// dynamic
//===----------------------------------------------------------------------===//

static llvm::Error readDynamic(RopeParameters &parameters, const RopeModel &model,
                               RopeConfig &rope) {
  auto factor = parameters.number("factor", factors);
  if (!factor)
    return factor.takeError();
  // The frequency of a single pair does not depend on theta.
  if (rope.dimensions > 2)
    rope.scaling = DynamicScaling{*factor, *model.h.maxPositions};
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// yarn
//===----------------------------------------------------------------------===//

/// As in transformers: the given value, or 0.1 m ln(factor) + 1 for m = mscale, divided by the same
/// for m = mscale_all_dim.
static llvm::Expected<double> yarnAttentionFactor(RopeParameters &parameters,
                                                  const RopeModel &model, double factor,
                                                  RopeConfig &rope) {
  auto scaleOf = [&](double m) { return factor <= 1 ? 1.0 : 0.1 * m * std::log(factor) + 1; };
  auto mscale = parameters.number("mscale", {0, 1e3}, 0.0);
  auto allDim = parameters.number("mscale_all_dim", {0, 1e3}, 0.0);
  if (llvm::Error error = firstError(mscale, allDim))
    return std::move(error);
  if (model.traits.yarnScalesScores && *allDim != 0)
    rope.scoreMultiplier = scaleOf(*allDim) * scaleOf(*allDim);
  bool both = *mscale != 0 && *allDim != 0;
  return parameters.number("attention_factor", positive,
                           both ? scaleOf(*mscale) / scaleOf(*allDim) : scaleOf(1));
}

static llvm::Error readYarn(RopeParameters &parameters, const RopeModel &model, RopeConfig &rope) {
  auto length = parameters.original(model.h.maxPositions);
  if (!length)
    return length.takeError();
  auto factor =
      parameters.number("factor", factors, double(*model.h.maxPositions) / double(*length));
  if (!factor)
    return factor.takeError();
  auto fast = parameters.number("beta_fast", positive, 32.0),
       slow = parameters.number("beta_slow", positive, 1.0);
  if (llvm::Error error = firstError(fast, slow))
    return error;
  auto attention = yarnAttentionFactor(parameters, model, *factor, rope);
  auto truncate = parameters.flag("truncate", true);
  if (llvm::Error error = firstError(attention, truncate))
    return error;
  if (*fast < *slow)
    return inputError(parameters.path(),
                      "has a " + inQuotes(parameters.named("beta_fast")) + " below its " +
                          inQuotes(parameters.named("beta_slow")),
                      hints::correct);
  rope.scaling =
      YarnScaling{*factor, *fast, *slow, *attention, *length, rope.dimensions - 1, *truncate};
  return llvm::Error::success();
}

static llvm::Error readOwnYarn(RopeParameters &parameters, const RopeModel &model,
                               RopeConfig &rope) {
  const OwnYarn &own = *model.traits.ownYarn;
  auto length = parameters.original(own.original);
  auto factor = parameters.number("factor", factors, own.factor),
       fast = parameters.number("beta_fast", positive, 32.0),
       slow = parameters.number("beta_slow", positive, 1.0),
       attention = parameters.number("attention_factor", positive, own.attentionFactor);
  if (llvm::Error error = firstError(length, factor, fast, slow, attention))
    return error;
  YarnScaling yarn = {*factor, *fast, *slow, *attention, *length, model.headDim / 2 - 1};
  if (own.check)
    if (llvm::Error error = own.check(yarn, parameters.path()))
      return error;
  if (*model.h.maxPositions > *length)
    rope.scaling = yarn;
  return llvm::Error::success();
}

static void addGgufYarn(const GgufArchitecture &architecture, NamedParameters &parameters,
                        llvm::StringRef name) {
  if (!architecture.truncatesYarn)
    parameters.add("truncate", false, name);
}

//===----------------------------------------------------------------------===//
// longrope
//===----------------------------------------------------------------------===//

static llvm::Error readLongRope(RopeParameters &parameters, const RopeModel &model,
                                RopeConfig &rope) {
  auto length = parameters.original(model.h.originalPositions ? model.h.originalPositions
                                                              : model.h.maxPositions);
  if (!length)
    return length.takeError();
  auto factor =
      parameters.number("factor", positive, double(*model.h.maxPositions) / double(*length));
  if (!factor)
    return factor.takeError();
  double usual = *factor <= 1 ? 1.0 : std::sqrt(1 + std::log(*factor) / std::log(double(*length)));
  auto attention = parameters.number("attention_factor", positive, usual);
  if (!attention)
    return attention.takeError();
  int64_t pairs = rope.dimensions / 2;
  auto shortFactors = parameters.numbers("short_factor", pairs, positive),
       longFactors = parameters.numbers("long_factor", pairs, positive);
  if (llvm::Error error = firstError(shortFactors, longFactors))
    return error;
  rope.scaling =
      LongRopeScaling{std::move(*shortFactors), std::move(*longFactors), *attention, *length};
  return llvm::Error::success();
}

constexpr RopeFactorTensor longRopeTensors[] = {{"rope_factors_short.weight", "short_factor"},
                                                {"rope_factors_long.weight", "long_factor"}};

//===----------------------------------------------------------------------===//
// llama3
//===----------------------------------------------------------------------===//

static llvm::Error readLlama3(RopeParameters &parameters, const RopeModel &, RopeConfig &rope) {
  auto factor = parameters.number("factor", factors),
       low = parameters.number("low_freq_factor", positive),
       high = parameters.number("high_freq_factor", positive);
  auto length = parameters.original();
  if (llvm::Error error = firstError(factor, low, high, length))
    return error;
  if (*high <= *low)
    return inputError(parameters.path(),
                      "has a " + inQuotes(parameters.named("high_freq_factor")) +
                          " that is not greater than its " +
                          inQuotes(parameters.named("low_freq_factor")),
                      hints::correct);
  rope.scaling = Llama3Scaling{*factor, *low, *high, *length};
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// proportional
//===----------------------------------------------------------------------===//

static llvm::Error readProportional(RopeParameters &parameters, const RopeModel &model,
                                    RopeConfig &rope) {
  auto share = parameters.number("partial_rotary_factor", ranges::share, 1.0),
       factor = parameters.number("factor", factors, 1.0);
  if (llvm::Error error = firstError(share, factor))
    return error;
  auto pairs = static_cast<int64_t>(*share * static_cast<double>(model.headDim) / 2);
  if (pairs < 1)
    return inputError(parameters.path(),
                      "rotates no pair of the " + llvm::Twine(model.headDim) +
                          " elements of a head by its " +
                          inQuotes(parameters.named("partial_rotary_factor")),
                      hints::correct);
  rope.scaling = ProportionalScaling{pairs, *factor};
  return llvm::Error::success();
}

llvm::ArrayRef<RopeKind> ropeKinds() {
  static constexpr RopeKind kinds[] = {
      {.name = kUnscaledRope,
       .read = readDefault,
       .readOwn = readDefault,
       .scales = false,
       .gguf = "none"},
      {.name = kLinearRope, .read = readLinear, .gguf = "linear"},
      {.name = "dynamic", .read = readDynamic},
      {.name = kYarnRope,
       .read = readYarn,
       .readOwn = readOwnYarn,
       .gguf = "yarn",
       .addGguf = addGgufYarn},
      {.name = "longrope",
       .alias = "su",
       .read = readLongRope,
       .gguf = "longrope",
       .ggufFactors = longRopeTensors},
      {.name = kLlama3Rope, .read = readLlama3},
      {.name = kProportionalRope, .read = readProportional, .readsShare = true},
  };
  return kinds;
}

static const RopeKind *findKind(llvm::StringRef name,
                                bool (*hasName)(const RopeKind &kind, llvm::StringRef name)) {
  if (name.empty())
    return nullptr;
  const RopeKind *found =
      llvm::find_if(ropeKinds(), [&](const RopeKind &kind) { return hasName(kind, name); });
  return found == ropeKinds().end() ? nullptr : found;
}

const RopeKind *findRopeKind(llvm::StringRef name) {
  return findKind(name, [](const RopeKind &kind, llvm::StringRef name) {
    return kind.name == name || kind.alias == name;
  });
}

const RopeKind *findGgufRopeKind(llvm::StringRef name) {
  return findKind(name,
                  [](const RopeKind &kind, llvm::StringRef name) { return kind.gguf == name; });
}

std::string listRopeKinds(llvm::function_ref<llvm::StringRef(const RopeKind &)> nameOf) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const RopeKind &kind : ropeKinds())
    if (llvm::StringRef name = nameOf(kind); !name.empty())
      names.push_back(name);
  return joinWithAnd(names);
}

} // namespace mica
