//===- ShardIndex.h - model.safetensors.index.json
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

/// Reads the index at `path`. A shard's name must be a plain *.safetensors name: it can point
/// nowhere outside the folder.
llvm::Expected<ShardIndex> readShardIndex(llvm::StringRef path);

/// The same for the index's text; `path` names it in errors.
llvm::Expected<ShardIndex> shardIndexFrom(llvm::StringRef text, llvm::StringRef path);

} // namespace mica

#endif // MICA_FRONTEND_WEIGHTS_SHARDINDEX_H
