//===- RopeFrequencies.h - the frequencies of rope and sinusoids *- C++ -*-===//
#ifndef MICA_IR_MICA_ROPEFREQUENCIES_H
#define MICA_IR_MICA_ROPEFREQUENCIES_H

#include "ir/Mica/RopeInterface.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>

namespace mica {

/// Frequencies of mica.sinusoid: 10000^(-i / (count - 1)), [count].
llvm::SmallVector<float> sinusoidFrequencies(int64_t count);

/// Frequencies of rope, [rotaryDim / 2], after `scaling`, which may be null, in a sequence of
/// `length` positions, on which some scalings depend. `amplitude` receives the factor of cosine and
/// sine. For the formulas see the ops and attributes in MicaOps.td.
llvm::SmallVector<float> ropeFrequencies(int64_t rotaryDim, double theta, RopeScalingAttr scaling,
                                         int64_t length, float &amplitude);

/// The length threshold of `scaling`; nullopt for null.
std::optional<int64_t> ropeLengthThreshold(RopeScalingAttr scaling);

/// The distinct thresholds of all ropes of a module, ascending.
llvm::SmallVector<int64_t> ropeLengthThresholds(mlir::ModuleOp module);

/// Whether the theta of a rope of a module grows with the length, see RopeScalingAttr.
bool ropeThetaGrows(mlir::ModuleOp module);

} // namespace mica

#endif // MICA_IR_MICA_ROPEFREQUENCIES_H
