//===- Download.h - a file of the hub to a blob of the cache ----*- C++ -*-===//
#ifndef MICA_TOOLS_HUB_DOWNLOAD_H
#define MICA_TOOLS_HUB_DOWNLOAD_H

#include "tools/hub/Http.h"
#include "tools/hub/Listing.h"

namespace mica::hub {

/// The progress of a download: the file's name or the reason for a wait, and the bytes received so
/// far.
using OnProgress = llvm::function_ref<void(llvm::StringRef what, uint64_t bytes)>;

/// Creates the error for a response without the file, such as 404.
using OnRefusal = llvm::function_ref<llvm::Error(const HttpHead &head)>;

/// Whether `blob` exists with the size of `file`.
bool isPresent(const std::string &blob, const RemoteFile &file);

/// Downloads `url` to `blob`, which appears only when its size and hash are those of `file`. Bytes
/// are collected in BLOB.incomplete, as in huggingface_hub; an interrupted download is resumed. The
/// caller must hold the blob's lock. Errors name the file.
llvm::Error download(HttpClient &http, const std::string &url, const RemoteFile &file,
                     const std::string &blob, OnProgress progress, OnRefusal refusal);

} // namespace mica::hub

#endif // MICA_TOOLS_HUB_DOWNLOAD_H
