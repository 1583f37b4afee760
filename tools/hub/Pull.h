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

/// Downloads the files of `name` on the hub's branch main that are not in the cache, and returns
/// the path to compile: a snapshot's folder or a GGUF file in it. Each file is added to the
/// snapshot when it is complete; refs/main is written after all files. Waits while another process
/// pulls the same repository.
llvm::Expected<std::string> pull(const HubName &name, const HubSettings &settings,
                                 OnPullProgress progress);

} // namespace mica::hub

#endif // MICA_TOOLS_HUB_PULL_H
