//===- ShardIndex.h - model.safetensors.index.json and its like -*- C++ -*-===//
#ifndef MICA_FRONTEND_FORMATS_SAFETENSORS_SHARDINDEX_H
#define MICA_FRONTEND_FORMATS_SAFETENSORS_SHARDINDEX_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mica {

/// Reads the shards listed in the index at `path`: plain file names, sorted. Their headers
/// determine which tensors they contain; as in transformers, the mapping of the index is not used.
/// Names must be plain file names with the extension `extension`, so that they cannot refer to
/// files outside of the folder.
llvm::Expected<std::vector<std::string>> readShardIndex(llvm::StringRef path,
                                                        llvm::StringRef extension = ".safetensors");

/// The same for the index's text; `path` names it in errors.
llvm::Expected<std::vector<std::string>> shardIndexFrom(llvm::StringRef text, llvm::StringRef path,
                                                        llvm::StringRef extension = ".safetensors");

} // namespace mica

#endif // MICA_FRONTEND_FORMATS_SAFETENSORS_SHARDINDEX_H
