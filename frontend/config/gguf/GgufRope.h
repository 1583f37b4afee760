//===- GgufRope.h - the scaling of rope in a GGUF file ----------*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_GGUF_GGUFROPE_H
#define MICA_FRONTEND_CONFIG_GGUF_GGUFROPE_H

#include "frontend/families/GgufArchitecture.h"

namespace mica {

/// The parameters of rope scaling by transformers' names: from the file's keys, or from the factors
/// of Llama 3 in `rope_freqs.weight`; of type "default" without scaling. `theta` is the base of
/// rope. Errors name the file's keys and tensors.
llvm::Expected<NamedParameters> readGgufRope(const GgufKeys &keys,
                                             const GgufArchitecture &architecture, double theta);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_GGUF_GGUFROPE_H
