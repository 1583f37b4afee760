//===- GenerationReader.h - generation_config.json --------------*- C++ -*-===//
#ifndef MICA_FRONTEND_CONFIG_GENERATIONREADER_H
#define MICA_FRONTEND_CONFIG_GENERATIONREADER_H

#include "frontend/families/KeySource.h"
#include "frontend/families/ModelConfig.h"

#include "llvm/Support/Error.h"

namespace mica {

/// Reads what `source`, a generation_config.json or the like of a GGUF file, proposes into
/// `defaults`, whose bos and eos it replaces where it has its own. What it leaves out has the
/// meaning that it has to transformers: without `do_sample` the likeliest token is chosen, with it
/// the temperature is 1, top_k 50, top_p
/// 1. Values that cannot be are refused; settings that Mica does not sample by are listed in
/// `ignored`, for they change no logits.
llvm::Error readGeneration(const KeySource &source, GenerationDefaults &defaults,
                           std::vector<IgnoredKey> &ignored);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_GENERATIONREADER_H
