//===- Pull.cpp - mica pull, and models by their name on the hub ----------===//

#include "tools/mica/Pull.h"

#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/SizeText.h"
#include "tools/hub/HubCache.h"
#include "tools/hub/Pull.h"
#include "tools/support/Support.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <chrono>

using namespace llvm;

namespace mica::tool {

/// Pulls with a progress bar that is updated a few times per second.
static Expected<std::string> pullWithBar(const hub::HubName &name,
                                         const hub::HubSettings &settings) {
  ProgressBar bar;
  std::string lastWhat;
  std::chrono::steady_clock::time_point lastShown;
  auto progress = [&](StringRef what, uint64_t bytes, uint64_t allBytes) {
    auto now = std::chrono::steady_clock::now();
    if (what == lastWhat && bytes < allBytes && now - lastShown < std::chrono::milliseconds(200))
      return;
    lastWhat = what.str();
    lastShown = now;
    auto done = static_cast<double>(bytes), all = static_cast<double>(allBytes);
    std::string text = rt::printable(what);
    if (bytes > 0)
      text += " (" + rt::bytesText(done) + " of " + rt::bytesText(all) + ")";
    bar.show(text, allBytes > 0 ? done / all : 1);
  };
  return hub::pull(name, settings, progress);
}

Expected<std::string> modelPath(const std::string &model) {
  std::error_code code = sys::fs::access(model, sys::fs::AccessMode::Exist);
  if (!hub::isHubName(model) && code == std::errc::no_such_file_or_directory)
    return createStringError(model + ": does not exist; pass a model folder, a GGUF file, a .mlir "
                                     "file, or OWNER/NAME on the Hugging Face hub");
  if (!code || !hub::isHubName(model))
    return model;
  Expected<hub::HubName> name = hub::parseHubName(model);
  if (!name)
    return name.takeError();
  Expected<hub::HubSettings> settings = hub::HubSettings::fromEnvironment();
  if (!settings)
    return settings.takeError();
  hub::HubCache cache(settings->cacheFolder);
  if (std::optional<std::string> path = cache.find(*name, settings->isOffline))
    return *path;
  if (settings->isOffline)
    return createStringError(model + ": is neither a path nor among the pulled models in " +
                             cache.path() + "; unset HF_HUB_OFFLINE to pull it");
  Expected<std::string> path = pullWithBar(*name, *settings);
  if (path)
    return path;
  std::string message = toString(path.takeError());
  StringRef reason = message;
  reason.consume_front(model + ": ");
  return createStringError(model + ": is not a path, and cannot be pulled from the hub: " + reason);
}

int runPull(const PullArguments &arguments) {
  Expected<hub::HubName> name = hub::parseHubName(arguments.model);
  if (!name)
    return report(name.takeError());
  Expected<hub::HubSettings> settings = hub::HubSettings::fromEnvironment();
  if (!settings)
    return report(settings.takeError());
  if (settings->isOffline)
    return report(arguments.model, createStringError("HF_HUB_OFFLINE is set; unset it to pull"));
  Expected<std::string> path = pullWithBar(*name, *settings);
  if (!path)
    return report(arguments.model, path.takeError());
  return print(*path + "\n");
}

} // namespace mica::tool
