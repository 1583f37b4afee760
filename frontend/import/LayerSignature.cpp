#include "frontend/import/LayerSignature.h"
#include "ir/Mica/Mica.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace mica {

static Type cacheType(MLIRContext *context, const LayerType &kind, int64_t layers, int64_t width) {
  const AttentionConfig &a = kind.attention;
  return KvCacheType::get(context, layers, a.kvHeads, width, Float32Type::get(context),
                          a.window.value_or(0), KvLayoutAttr());
}

/// Inputs of a convolution over rows of `width` numbers.
static Type rollingType(MLIRContext *context, int64_t layers, int64_t width, int64_t taps) {
  return RollingStateType::get(context, layers, width, Float32Type::get(context), taps);
}

static Type recurrentType(MLIRContext *context, int64_t layers, int64_t heads, int64_t keyDim,
                          int64_t valueDim) {
  return RecurrentStateType::get(context, layers, heads, keyDim, valueDim,
                                 Float32Type::get(context));
}

using Context = MLIRContext *;
using Kind = const LayerType &;

static constexpr LayerState kAttentionStates[] = {
    {kKeyCache, [](Context context, Kind kind, int64_t layers,
                   int64_t) { return cacheType(context, kind, layers, kind.attention.headDim); }},
    {kValueCache, [](Context context, Kind kind, int64_t layers, int64_t) {
       return cacheType(context, kind, layers, kind.attention.valueDim);
     }}};

static constexpr LayerState kMambaStates[] = {
    {kConvState,
     [](Context context, Kind kind, int64_t layers, int64_t) {
       const auto &mamba = *kind.mixer<MambaConfig>();
       return rollingType(context, layers, mamba.channels(), mamba.taps);
     }},
    {kRecurrentState, [](Context context, Kind kind, int64_t layers, int64_t) {
       const auto &mamba = *kind.mixer<MambaConfig>();
       return recurrentType(context, layers, mamba.heads, mamba.stateDim, mamba.headDim);
     }}};

static constexpr LayerState kDeltaNetStates[] = {
    {kConvState,
     [](Context context, Kind kind, int64_t layers, int64_t) {
       const auto &delta = *kind.mixer<DeltaNetConfig>();
       return rollingType(context, layers, delta.channels(), delta.taps);
     }},
    {kRecurrentState, [](Context context, Kind kind, int64_t layers, int64_t) {
       const auto &delta = *kind.mixer<DeltaNetConfig>();
       return recurrentType(context, layers, delta.valueHeads, delta.keyDim, delta.valueDim);
     }}};

static constexpr LayerState kConvStates[] = {
    {kConvState, [](Context context, Kind kind, int64_t layers, int64_t hidden) {
       return rollingType(context, layers, hidden, kind.mixer<ShortConvConfig>()->taps);
     }}};

llvm::SmallVector<LayerState, 4> layerStates(const LayerType &kind) {
  llvm::SmallVector<LayerState, 4> states;
  if (kind.hasAttention())
    llvm::append_range(states, kAttentionStates);
  if (!kind.mixes)
    return states;
  using States = llvm::ArrayRef<LayerState>;
  llvm::append_range(
      states,
      std::visit(llvm::makeVisitor([](std::monostate) { return States(); },
                                   [](const ShortConvConfig &) { return States(kConvStates); },
                                   [](const MambaConfig &) { return States(kMambaStates); },
                                   [](const DeltaNetConfig &) { return States(kDeltaNetStates); }),
                 kind.stateMixer));
  return states;
}

bool followsLength(const LayerType &kind) {
  return kind.hasAttention() && kind.attention.rope.followsLength();
}

llvm::StringRef stateLayerName(const LayerType &kind, bool numbered) {
  return !numbered ? "layer" : kind.hasAttention() ? "cache_layer" : "state_layer";
}

llvm::SmallVector<llvm::StringRef> layerArguments(const LayerType &kind, bool numbered) {
  llvm::SmallVector<llvm::StringRef> names = {"x"};
  for (const LayerState &state : layerStates(kind))
    names.push_back(state.name);
  names.push_back("layer");
  if (!kind.mixes)
    return names;
  if (numbered)
    names.push_back(stateLayerName(kind, numbered));
  names.append({"sequences", "positions"});
  if (followsLength(kind))
    names.push_back("lengths");
  if (kind.perLayer)
    names.push_back(kPerLayerInputs);
  return names;
}

} // namespace mica
