//===- StackedExperts.h - tensors with all experts of a layer ---*- C++ -*-===//
//
// Some checkpoints store the same matrix of all experts of a layer in one tensor, although the
// sources of weights name each expert's: "experts.0.up_proj", "experts.1.up_proj".
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_MICA_STACKEDEXPERTS_H
#define MICA_IR_MICA_STACKEDEXPERTS_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace mica {

/// A unit attribute of the modules of such checkpoints.
inline constexpr llvm::StringLiteral kStackedExpertsAttr = "mica.stacked_experts";

/// The tensor of all experts that `expert` is stored in, "experts.*.up_proj"; the same name if it
/// is not an expert's.
std::string stackedName(llvm::StringRef expert);

} // namespace mica

#endif // MICA_IR_MICA_STACKEDEXPERTS_H
