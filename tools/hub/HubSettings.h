//===- HubSettings.h - huggingface_hub's environment ------------*- C++ -*-===//
#ifndef MICA_TOOLS_HUB_HUBSETTINGS_H
#define MICA_TOOLS_HUB_HUBSETTINGS_H

#include "llvm/Support/Error.h"

#include <string>

namespace mica::hub {

struct HubSettings {
  std::string endpoint;    ///< HF_ENDPOINT, without a trailing slash
  std::string token;       ///< HF_TOKEN or from huggingface_hub's file; may be empty
  std::string cacheFolder; ///< HF_HUB_CACHE, or hub in HF_HOME
  unsigned stallSeconds;   ///< HF_HUB_DOWNLOAD_TIMEOUT: a transfer that stalls for so long fails
  bool isOffline;          ///< HF_HUB_OFFLINE

  /// The settings of this process, with huggingface_hub's defaults. Errors name the variable or
  /// file.
  static llvm::Expected<HubSettings> fromEnvironment();
};

} // namespace mica::hub

#endif // MICA_TOOLS_HUB_HUBSETTINGS_H
