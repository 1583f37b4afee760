//===- Listing.h - the files of a repository, and those of a model -*- C++ -*-===//
#ifndef MICA_TOOLS_HUB_LISTING_H
#define MICA_TOOLS_HUB_LISTING_H

#include "tools/hub/HubName.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace mica::hub {

/// A file of a repository. `hash` is its name among the cache's blobs.
struct RemoteFile {
  std::string path;
  uint64_t size = 0; ///< bytes
  std::string hash;  ///< hexadecimal: SHA-256 of the bytes (LFS), or SHA-1 as git makes it
  bool isLfs() const { return hash.size() == 64; }
};

/// The commit in the hub's description of a repository. `source` is for errors.
llvm::Expected<std::string> parseCommit(llvm::StringRef text, llvm::StringRef source);

/// Whether `text` is a commit as the hub names it: 40 hexadecimal digits.
bool isCommit(llvm::StringRef text);

/// The files in one page of the hub's tree listing. Refuses paths that lead out of the folder,
/// and sizes and hashes that are none.
llvm::Expected<std::vector<RemoteFile>> parseListing(llvm::StringRef text, llvm::StringRef source);

/// The files that make a model.
struct Selection {
  std::vector<std::string> files; ///< those with weights last
  std::string model;              ///< what is compiled: one of the files, or empty: their folder
  std::string index;              ///< one of the files, of which `readShards` reads the shards
};

/// The files of `name` among `paths`. Without a selection the configuration, the tokenizer's files
/// and the weights that Mica reads, safetensors rather than torch's, or the only GGUF file; else
/// the file of that path, or the GGUF file whose name ends so, with all its parts. Errors list the
/// candidates.
llvm::Expected<Selection> selectFiles(llvm::ArrayRef<std::string> paths, const HubName &name);

/// The further files that the selection's index in `folder` names; none where it has no index.
llvm::Expected<std::vector<std::string>> readShards(const Selection &selection,
                                                    llvm::StringRef folder);

} // namespace mica::hub

#endif // MICA_TOOLS_HUB_LISTING_H
