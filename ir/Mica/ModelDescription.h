//===- ModelDescription.h - properties of a model besides its ops ---------===//
//
// The attribute `mica.model` of a module, as a value. All code that reads or writes one of its
// numbers uses the bounds below and those of ir/Entry/SamplingDefaults.h.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_MICA_MODELDESCRIPTION_H
#define MICA_IR_MICA_MODELDESCRIPTION_H

#include "ir/Entry/SamplingDefaults.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

#include <optional>
#include <vector>

namespace mica {

/// On a module: the attribute that this describes.
inline constexpr llvm::StringLiteral kModelAttr = "mica.model";

namespace bounds {
/// Of the entry `max_positions`.
inline constexpr SettingRange<int64_t> maxPositions{1, 1 << 28};
} // namespace bounds

struct ModelDescription {
  std::string family; ///< for display only
  int64_t maxPositions = 0;
  std::optional<int64_t> bos;
  std::vector<int64_t> eos;
  SamplingDefaults generation;
};

/// Reads `model`, the attribute `mica.model`; token ids must be below `vocabulary`. Unknown entries
/// and numbers out of bounds are errors.
llvm::FailureOr<ModelDescription>
readModelDescription(mlir::Attribute model, int64_t vocabulary,
                     llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace mica

#endif // MICA_IR_MICA_MODELDESCRIPTION_H
