//===- GgufRope.h - the scaling of rope in a GGUF file
//---------------------------------------------===//
#ifndef MICA_FRONTEND_CONFIG_GGUF_GGUFROPE_H
#define MICA_FRONTEND_CONFIG_GGUF_GGUFROPE_H

#include "frontend/formats/gguf/GgufModel.h"

#include "llvm/Support/JSON.h"

namespace mica {

/// Whether the key `name`, behind the architecture's, is read here.
bool isGgufRopeKey(llvm::StringRef name);

/// Adds the dictionary of rope's scaling to `config` where the file has one: by its keys, or by the
/// factors of Llama 3 in `rope_freqs.weight`. `origins` hears what came from which key. Errors name
/// the file's own keys.
llvm::Error addGgufRopeScaling(const GgufModel &model, llvm::StringRef architecture,
                               llvm::json::Object &config,
                               std::vector<std::pair<std::string, std::string>> &origins);

} // namespace mica

#endif // MICA_FRONTEND_CONFIG_GGUF_GGUFROPE_H
