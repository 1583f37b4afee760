//===- RopeReader.h - the rope of a config
//-------------------------------------------------------===//
#ifndef MICA_FRONTEND_CONFIG_ROPEREADER_H
#define MICA_FRONTEND_CONFIG_ROPEREADER_H

#include "frontend/families/Family.h"

namespace mica {

/// The rope that `h` describes under either of its names (rope_theta and rope_scaling,
/// rope_parameters), for heads of `headDim` elements, in layers with a window or without. Scalings
/// other than none, linear, dynamic, yarn, longrope and llama3 are refused by name, and so is every
/// entry that the scaling does not know.
llvm::Expected<RopeConfig> readRope(const Hyperparameters &h, const FamilyTraits &traits,
                                    int64_t headDim, bool slides, llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_ROPEREADER_H
