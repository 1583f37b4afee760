//===- Precision.cpp - names and types of precisions ----------------------===//

#include "passes/support/Precision.h"

using namespace mlir;
using namespace mica;

namespace {
/// A float type; instances are stored in Entry::floatType.
template <typename FloatType> Type floats(MLIRContext *context) { return FloatType::get(context); }

/// Properties of a precision that PrecisionInfo does not have.
struct Entry {
  StringLiteral help;
  Type (*floatType)(MLIRContext *); ///< null for integers
  /// Block formats of matrices, and of lm_head and embedding tables; empty for floats.
  StringLiteral blocks, vocabularyBlocks;
  int significantBits;
  double storedBits;
  /// If quantized from floats, and if requantized from blocks.
  PrecisionCosts costs, requantizedCosts;
};
} // namespace

static constexpr PrecisionCosts::Weights kUnmeasured{"", ""};
static constexpr PrecisionCosts kNoCosts{kUnmeasured, kUnmeasured, kUnmeasured, ""};

/// In the order of kPrecisions.
static constexpr Entry kEntries[] = {
    {"32 bits", floats<Float32Type>, "", "", 24, 32, kNoCosts, kNoCosts},
    // A checkpoint in bf16 or f16 loses less than one in f32.
    {"the upper 16 bits of f32",
     floats<BFloat16Type>,
     "",
     "",
     9,
     16,
     kNoCosts,
     {{".00019", ""}, kUnmeasured, kUnmeasured, ""}},
    {"8-bit integers, a scale per 32",
     nullptr,
     "int8_g32",
     "int8_g32",
     8,
     8.3,
     {{".00016", ".00039"}, kUnmeasured, kUnmeasured, ".000016"},
     {{".00155", ".00467"}, kUnmeasured, kUnmeasured, ".00093"}},
    {"4-bit integers, a scale and an offset per 32",
     nullptr,
     "int4_g32",
     "int6_g32",
     4,
     4.8,
     {{".0191", ".0194"}, {".0182", ".0185"}, {".0183", ".0185"}, ""},
     {{".0842", ".0880"}, {".0201", ".0235"}, {".0218", ".0248"}, ""}},
};
static_assert(std::size(kEntries) == kPrecisions.size());

static const Entry &entryOf(Precision precision) {
  return kEntries[static_cast<size_t>(precision)];
}

StringRef mica::nameOf(Precision precision) { return infoOf(precision).name; }

std::vector<std::string> mica::precisionNames() {
  std::vector<std::string> names;
  for (const PrecisionInfo &info : kPrecisions)
    names.emplace_back(info.name);
  return names;
}

std::vector<std::string> mica::cachePrecisionNames() {
  std::vector<std::string> names;
  for (const PrecisionInfo &info : kPrecisions)
    if (isCachePrecision(info.precision))
      names.emplace_back(info.name);
  return names;
}

bool mica::isInteger(Precision precision) { return infoOf(precision).isInteger; }
bool mica::isCachePrecision(Precision precision) { return infoOf(precision).cacheBytes > 0; }

StringRef mica::measuredModelOf(CheckpointKind kind) {
  return kind == CheckpointKind::Floats ? "the worst of small models trained in f32"
                                        : "SmolLM2-135M";
}

const PrecisionCosts &mica::costsOf(Precision precision, CheckpointKind kind) {
  const Entry &entry = entryOf(precision);
  return kind == CheckpointKind::Floats ? entry.costs : entry.requantizedCosts;
}

std::string PrecisionCosts::textOf(ActivationStatistics statistics, bool hasInt8Rows) const {
  auto costOf = [&](const Weights &cost) -> StringRef {
    return hasInt8Rows && !cost.int8Rows.empty() ? cost.int8Rows : cost.exactRows;
  };
  StringRef plain = costOf(weights), measured;
  if (statistics == ActivationStatistics::Calibrated)
    measured = costOf(calibrated);
  else if (statistics == ActivationStatistics::Imatrix)
    measured = costOf(imatrix);
  if (!measured.empty())
    return measured.str();
  return plain.empty() || statistics == ActivationStatistics::None
             ? plain.str()
             : (plain + " without statistics").str();
}

StringRef mica::maxCostOfInt8Rows() { return ".00369"; }

double mica::significantBitsOf(Precision precision) { return entryOf(precision).significantBits; }
double mica::storedBitsOf(Precision precision) { return entryOf(precision).storedBits; }

static Type typeOf(MLIRContext *context, const Entry &entry, StringRef blocks) {
  return entry.floatType ? entry.floatType(context)
                         : Type(BlockType::get(context, blockFormatNamed(blocks)));
}

Type mica::weightTypeOf(MLIRContext *context, Precision precision) {
  const Entry &entry = entryOf(precision);
  return typeOf(context, entry, entry.blocks);
}

Type mica::vocabularyTypeOf(MLIRContext *context, Precision precision) {
  const Entry &entry = entryOf(precision);
  return typeOf(context, entry, entry.vocabularyBlocks);
}

Type mica::cacheTypeOf(MLIRContext *context, Precision precision) {
  return isInteger(precision) ? Type(Int8Type::get(context)) : weightTypeOf(context, precision);
}

Precision mica::precisionOf(Type element) {
  if (isQuantized(element, QuantizedUse::Cache))
    return Precision::Int8;
  assert(!isQuantized(element) && "blocks have a format instead");
  return element.isF32() ? Precision::F32 : Precision::BF16;
}

llvm::cl::ValuesClass mica::precisionValues() {
  auto valueOf = [](const PrecisionInfo &info) {
    return llvm::cl::OptionEnumValue{info.name, static_cast<int>(info.precision),
                                     entryOf(info.precision).help};
  };
  // LLVM takes the values as a braced list only.
  return std::apply(
      [&](const auto &...infos) { return llvm::cl::ValuesClass({valueOf(infos)...}); },
      kPrecisions);
}

llvm::cl::ValuesClass mica::exactRowsValues() {
  return llvm::cl::values(clEnumValN(ExactRows::F32, "f32", "32 bits"),
                          clEnumValN(ExactRows::BF16, "bf16", "the upper 16 bits of f32"),
                          clEnumValN(ExactRows::Int16, "int16", "integers, a scale per 32"));
}

StringRef mica::nameOf(PromptRows rows) { return rows == PromptRows::Int8 ? "int8" : "exact"; }

std::vector<std::string> mica::promptRowsNames() {
  return {nameOf(PromptRows::Exact).str(), nameOf(PromptRows::Int8).str()};
}

std::optional<PromptRows> mica::promptRowsNamed(StringRef name) {
  for (PromptRows rows : {PromptRows::Exact, PromptRows::Int8})
    if (nameOf(rows) == name)
      return rows;
  return std::nullopt;
}

FailureOr<PromptRows> mica::promptRowsOf(ModuleOp module) {
  Attribute stated = module->getAttr(kPromptRowsAttr);
  if (!stated)
    return PromptRows::Exact;
  auto name = dyn_cast<StringAttr>(stated);
  if (std::optional<PromptRows> rows = promptRowsNamed(name ? name.getValue() : StringRef()))
    return *rows;
  return module.emitOpError() << "has " << kPromptRowsAttr << " = " << stated
                              << ", expected \"exact\" or \"int8\"";
}

void mica::setPromptRows(ModuleOp module, PromptRows rows) {
  module->setAttr(kPromptRowsAttr, StringAttr::get(module.getContext(), nameOf(rows)));
}

Type mica::promptRowType(MLIRContext *context, PromptRows rows, ExactRows exact) {
  if (rows == PromptRows::Int8)
    return integerRowType(context, /*bits=*/8);
  switch (exact) {
  case ExactRows::F32:
    return Float32Type::get(context);
  case ExactRows::BF16:
    return BFloat16Type::get(context);
  case ExactRows::Int16:
    return integerRowType(context, /*bits=*/16);
  }
  llvm_unreachable("all exact rows are handled above");
}

std::string mica::displayNameOf(Type element) {
  if (auto quantized = dyn_cast<QuantizedElementType>(element))
    return quantized.getDisplayName();
  return element.isBF16() ? "bf16" : "f32";
}

std::optional<std::pair<PromptRows, ExactRows>> mica::promptRowsOfType(MLIRContext *context,
                                                                       StringRef name) {
  for (PromptRows rows : {PromptRows::Exact, PromptRows::Int8})
    for (ExactRows exact : {ExactRows::BF16, ExactRows::F32, ExactRows::Int16})
      if (displayNameOf(promptRowType(context, rows, exact)) == name)
        return std::pair(rows, exact);
  return std::nullopt;
}
