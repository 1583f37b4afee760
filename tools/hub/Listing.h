//===- Listing.h - files of a repository or a model -------------*- C++ -*-===//
#ifndef MICA_TOOLS_HUB_LISTING_H
#define MICA_TOOLS_HUB_LISTING_H

#include "tools/hub/HubName.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace mica::hub {

/// A file of a repository. `hash` is the name of its blob in the cache.
struct RemoteFile {
  std::string path;
  uint64_t size = 0; ///< bytes
  std::string hash;  ///< hexadecimal: SHA-256 of the bytes (LFS), or git's SHA-1 of a blob
  bool isLfs() const { return hash.size() == 64; }
};

/// The commit in the hub's description of a repository. `source` names it in errors.
llvm::Expected<std::string> parseCommit(llvm::StringRef text, llvm::StringRef source);

/// Whether `text` is a commit as used by the hub: 40 hexadecimal digits.
bool isCommit(llvm::StringRef text);

/// The files in a page of the hub's tree listing. Rejects paths outside of the folder, and invalid
/// sizes and hashes.
llvm::Expected<std::vector<RemoteFile>> parseListing(llvm::StringRef text, llvm::StringRef source);

/// The files of a model.
struct Selection {
  std::vector<std::string> files; ///< those with weights last
  std::string model;              ///< the file to compile, one of `files`; empty: their folder
  std::string index;              ///< one of `files`, from which `readShards` reads the shards
};

/// The files for `name` among `paths`. Without a selection: the configuration, the tokenizer's
/// files and the weights that Mica reads (safetensors if there are both, else torch's), or the only
/// GGUF file. Otherwise the file with that path, or the GGUF file whose name ends with it, with all
/// its parts. Errors list the candidates.
llvm::Expected<Selection> selectFiles(llvm::ArrayRef<std::string> paths, const HubName &name);

/// The additional files named by the selection's index in `folder`; none without an index.
llvm::Expected<std::vector<std::string>> readShards(const Selection &selection,
                                                    llvm::StringRef folder);

} // namespace mica::hub

#endif // MICA_TOOLS_HUB_LISTING_H
