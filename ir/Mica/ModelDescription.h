//===- ModelDescription.h - properties of a model besides its ops -*- C++ -*-===//
//
// The attribute `mica.model` of a module, as a value. All code that reads or writes one of its
// numbers uses these bounds.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_MICA_MODELDESCRIPTION_H
#define MICA_IR_MICA_MODELDESCRIPTION_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

#include <optional>
#include <vector>

namespace mica {

/// The ranges of the numbers of `mica.model`, inclusive.
struct NumberBounds {
  llvm::StringLiteral name;
  double least, most;
};

namespace bounds {
inline constexpr NumberBounds maxPositions{"max_positions", 1, 1 << 28};
inline constexpr NumberBounds temperature{"temperature", 0, 1e3};
inline constexpr NumberBounds topP{"top_p", 0, 1};
inline constexpr NumberBounds minP{"min_p", 0, 1};
inline constexpr NumberBounds typicalP{"typical_p", 0, 1};
inline constexpr NumberBounds repetitionPenalty{"repetition_penalty", 1e-3, 1e3};
inline constexpr NumberBounds topK{"top_k", 0, 1 << 24};
} // namespace bounds

/// The sampling settings that a model recommends.
struct SamplingDefaults {
  std::optional<double> temperature, topP, minP, typicalP, repetitionPenalty;
  std::optional<int64_t> topK;
  std::optional<bool> doSample;
};

struct ModelDescription {
  std::string family; ///< for people
  int64_t maxPositions = 0;
  std::optional<int64_t> bos;
  std::vector<int64_t> eos;
  SamplingDefaults generation;
};

/// Reads `model`, the attribute `mica.model` of a model with that vocabulary size. Unknown entries
/// and numbers out of bounds are errors.
llvm::FailureOr<ModelDescription>
readModelDescription(mlir::Attribute model, int64_t vocabulary,
                     llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace mica

#endif // MICA_IR_MICA_MODELDESCRIPTION_H
