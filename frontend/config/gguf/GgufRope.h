//===- GgufRope.h - the scaling of rope in a GGUF file ----------*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_GGUF_GGUFROPE_H
#define MICA_FRONTEND_CONFIG_GGUF_GGUFROPE_H

#include "frontend/families/GgufArchitecture.h"

namespace mica {

/// The parameters of rope's scaling by transformers' names: what the file's keys say, or the
/// factors of Llama 3 in `rope_freqs.weight`; of the type "default" where it has no scaling.
/// `theta` is rope's base. Errors name the file's keys and tensors.
llvm::Expected<NamedParameters> readGgufRope(const GgufKeys &keys,
                                             const GgufArchitecture &architecture, double theta);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_GGUF_GGUFROPE_H
