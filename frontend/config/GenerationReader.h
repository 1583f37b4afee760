//===- GenerationReader.h - generation_config.json --------------*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_GENERATIONREADER_H
#define MICA_FRONTEND_CONFIG_GENERATIONREADER_H

#include "frontend/families/KeySource.h"
#include "frontend/families/ModelConfig.h"

#include "llvm/Support/Error.h"

namespace mica {

/// Reads generation defaults from `source`, a generation_config.json or the equivalent in a GGUF
/// file, into `defaults`; its bos and eos, if any, replace those there. Missing settings have the
/// meaning that they have in transformers: without `do_sample` decoding is greedy; with it,
/// temperature is 1, top_k 50, top_p 1. Errors: invalid values. Unsupported settings are listed in
/// `ignored`, because they do not change logits.
llvm::Error readGeneration(const KeySource &source, GenerationDefaults &defaults,
                           std::vector<IgnoredKey> &ignored);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_GENERATIONREADER_H
