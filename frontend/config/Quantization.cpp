//===- Quantization.cpp - quantized checkpoints ---------------------------===//

#include "frontend/config/Quantization.h"

#include "frontend/support/InputError.h"

#include "llvm/ADT/STLExtras.h"

namespace mica {

/// The keys of config.json that describe how a checkpoint is quantized, and the method that a key
/// implies if its value names none; empty: none.
static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> kQuantizationKeys[] = {
    {"quantization_config", ""},
    {"compression_config", "compressed-tensors"},
    {"quantization", "MLX"},
};

/// The methods that some families support.
static constexpr llvm::StringLiteral kSupportedMethods[] = {"mxfp4"};

bool isQuantizationKey(llvm::StringRef key) {
  return llvm::is_contained(llvm::make_first_range(kQuantizationKeys), key);
}

/// The quantization method of a checkpoint; nothing: unknown. Only bitsandbytes has load_in_8bit.
static std::optional<llvm::StringRef> quantizationMethod(llvm::StringRef key,
                                                         const llvm::json::Value &quantization) {
  const llvm::json::Object *object = quantization.getAsObject();
  if (!object)
    return quantization.getAsString();
  if (auto method = object->getString("quant_method"))
    return method;
  for (const auto &[name, method] : kQuantizationKeys)
    if (name == key && !method.empty())
      return method;
  if (object->getBoolean("load_in_8bit").value_or(false) ||
      object->getBoolean("load_in_4bit").value_or(false))
    return "bitsandbytes";
  return std::nullopt;
}

llvm::Error quantizedError(llvm::StringRef path, const llvm::Twine &problem) {
  return inputError(path, problem, hints::notQuantized);
}

llvm::Error checkQuantization(llvm::StringRef path, llvm::StringRef key,
                              const llvm::json::Value &quantization, llvm::StringRef family,
                              llvm::StringRef supported) {
  std::optional<llvm::StringRef> method = quantizationMethod(key, quantization);
  if (method && !supported.empty() && *method == supported)
    return llvm::Error::success();
  std::string problem = inQuotes(key) + ": the checkpoint is quantized";
  if (method)
    problem += " by " + inQuotes(*method);
  if (!supported.empty())
    problem += ", only " + inQuotes(supported) + " is supported";
  else if (method && llvm::is_contained(kSupportedMethods, *method))
    problem += ", which is not supported for " + family.str();
  else
    problem += ", which is not supported";
  return quantizedError(path, problem);
}

} // namespace mica
