//===- Pull.h - a model of the hub into the cache ---------------*- C++ -*-===//
#ifndef MICA_TOOLS_HUB_PULL_H
#define MICA_TOOLS_HUB_PULL_H

#include "tools/hub/HubName.h"
#include "tools/hub/HubSettings.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>

namespace mica::hub {

/// The current activity, and the bytes received so far of the total.
using OnPullProgress =
    llvm::function_ref<void(llvm::StringRef what, uint64_t bytes, uint64_t allBytes)>;

/// Downloads the files of `name` at the hub's branch main that the cache lacks,
/// and returns the path to compile: a snapshot's folder or a GGUF file in it. Files
/// become part of the snapshot one by one, each whole; refs/main follows when all are. Waits while
/// another process pulls the same repository.
llvm::Expected<std::string> pull(const HubName &name, const HubSettings &settings,
                                 OnPullProgress progress);

} // namespace mica::hub

#endif // MICA_TOOLS_HUB_PULL_H
