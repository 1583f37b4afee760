//===- ShardIndex.h - model.safetensors.index.json and its like -*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_SAFETENSORS_SHARDINDEX_H
#define MICA_FRONTEND_FORMATS_SAFETENSORS_SHARDINDEX_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mica {

/// The shards that the index at `path` names, plain file names, sorted. They say themselves what
/// they hold: where the index places a tensor does not matter, as it does not for transformers. A
/// shard's name must be a plain one with the extension `extension`: it can point nowhere outside
/// the folder.
llvm::Expected<std::vector<std::string>> readShardIndex(llvm::StringRef path,
                                                        llvm::StringRef extension = ".safetensors");

/// The same for the index's text; `path` names it in errors.
llvm::Expected<std::vector<std::string>> shardIndexFrom(llvm::StringRef text, llvm::StringRef path,
                                                        llvm::StringRef extension = ".safetensors");

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_SAFETENSORS_SHARDINDEX_H
