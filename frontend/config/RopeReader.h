//===- RopeReader.h - the rope of a config ----------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_ROPEREADER_H
#define MICA_FRONTEND_CONFIG_ROPEREADER_H

#include "frontend/config/KeyReader.h"
#include "frontend/families/Family.h"

namespace mica {

/// The rope described by `h` in either form of config.json (rope_theta and rope_scaling, or
/// rope_parameters) or by the keys of a GGUF file (ropeKeys), for heads of `headDim` elements, in
/// layers with or without a window. Errors name a scaling that is not in ropeKinds(), and any entry
/// unknown to the scaling.
llvm::Expected<RopeConfig> readRope(const Hyperparameters &h, const FamilyTraits &traits,
                                    int64_t headDim, bool usesSlidingWindow, const KeyNames &names);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_ROPEREADER_H
