//===- RopeReader.h - the rope of a config ----------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_ROPEREADER_H
#define MICA_FRONTEND_CONFIG_ROPEREADER_H

#include "frontend/config/KeyReader.h"
#include "frontend/families/Family.h"

namespace mica {

/// The rope that `h` describes under either of config.json's names (rope_theta and rope_scaling,
/// rope_parameters) or by the keys of a GGUF file (ropeKeys), for heads of `headDim` elements, in
/// layers with a window or without. Scalings other than none, linear, dynamic, yarn, longrope and
/// llama3 are refused by name, and so is every entry that the scaling does not know.
llvm::Expected<RopeConfig> readRope(const Hyperparameters &h, const FamilyTraits &traits,
                                    int64_t headDim, bool usesSlidingWindow, const KeyNames &names);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_ROPEREADER_H
