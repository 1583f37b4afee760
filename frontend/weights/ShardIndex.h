//===- ShardIndex.h - model.safetensors.index.json and its like
//----------------------------------------------===//
#ifndef MICA_FRONTEND_WEIGHTS_SHARDINDEX_H
#define MICA_FRONTEND_WEIGHTS_SHARDINDEX_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mica {

/// Which shard holds which tensor.
struct ShardIndex {
  std::vector<std::string> files;    ///< plain file names, sorted
  llvm::StringMap<unsigned> tensors; ///< tensor name to index into `files`
};

/// Reads the index at `path`. A shard's name must be a plain one with the extension `extension`: it
/// can point nowhere outside the folder.
llvm::Expected<ShardIndex> readShardIndex(llvm::StringRef path,
                                          llvm::StringRef extension = ".safetensors");

/// The same for the index's text; `path` names it in errors.
llvm::Expected<ShardIndex> shardIndexFrom(llvm::StringRef text, llvm::StringRef path,
                                          llvm::StringRef extension = ".safetensors");

} // namespace mica

#endif // MICA_FRONTEND_WEIGHTS_SHARDINDEX_H
