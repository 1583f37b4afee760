//===- HubSettings.cpp - huggingface_hub's environment --------------------===//

#include "tools/hub/HubSettings.h"

#include "frontend/support/InputError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cstdlib>

using namespace llvm;

namespace mica::hub {

/// The first of the variables that is set and not empty; empty if there is none.
static StringRef variable(std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (const char *value = std::getenv(name); value && *value)
      return value;
  return {};
}

static std::string pathOf(StringRef path) {
  SmallString<128> full;
  sys::fs::expand_tilde(path, full);
  return full.str().str();
}

static std::string in(StringRef folder, StringRef name) {
  SmallString<128> path(folder);
  sys::path::append(path, name);
  return path.str().str();
}

static Expected<std::string> homeOfHub() {
  if (StringRef home = variable({"HF_HOME"}); !home.empty())
    return pathOf(home);
  if (StringRef caches = variable({"XDG_CACHE_HOME"}); !caches.empty())
    return in(pathOf(caches), "huggingface");
  SmallString<128> home;
  // No test: without HOME, the user database names one.
  if (!sys::path::home_directory(home))
    return createStringError("neither HF_HOME nor HOME is set; set one of them");
  return in(home, ".cache/huggingface");
}

/// The token, which is sent as a header: it must not contain a newline.
static Expected<std::string> findToken(StringRef home) {
  std::string source = "HF_TOKEN", text = variable({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}).str();
  if (text.empty()) {
    StringRef path = variable({"HF_TOKEN_PATH"});
    source = path.empty() ? in(home, "token") : pathOf(path);
    ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(source);
    if (!file)
      return "";
    text = (*file)->getBuffer().str();
  }
  StringRef token = StringRef(text).trim();
  if (token.size() > 4096 || !all_of(token, [](char c) { return isPrint(c) && c != ' '; }))
    return inputError(source, "does not contain a Hugging Face token", "correct or remove it");
  return token.str();
}

Expected<HubSettings> HubSettings::fromEnvironment() {
  Expected<std::string> home = homeOfHub();
  if (!home)
    return home.takeError();
  HubSettings settings;
  StringRef cache = variable({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  settings.cacheFolder = cache.empty() ? in(*home, "hub") : pathOf(cache);
  StringRef endpoint = variable({"HF_ENDPOINT"});
  settings.endpoint = endpoint.empty() ? "https://huggingface.co" : endpoint.rtrim('/').str();
  if (!endpoint.empty() && !endpoint.starts_with("http://") && !endpoint.starts_with("https://"))
    return inputError("HF_ENDPOINT",
                      "is " + inQuotes(endpoint) + ", which is not an http(s) address",
                      "set it to one such as https://huggingface.co");
  Expected<std::string> token = findToken(*home);
  if (!token)
    return token.takeError();
  settings.token = std::move(*token);
  settings.stallSeconds = 30;
  if (StringRef seconds = variable({"HF_HUB_DOWNLOAD_TIMEOUT"}); !seconds.empty())
    if (seconds.getAsInteger(10, settings.stallSeconds) || settings.stallSeconds == 0)
      return inputError("HF_HUB_DOWNLOAD_TIMEOUT",
                        "is " + inQuotes(seconds) + ", which is not a number of seconds",
                        "set it to a whole number from 1");
  std::string offline = variable({"HF_HUB_OFFLINE"}).upper();
  settings.isOffline = is_contained({"1", "ON", "YES", "TRUE"}, offline);
  return settings;
}

} // namespace mica::hub
