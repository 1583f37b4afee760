#include "tools/hub/Listing.h"

#include <cstdlib>

using namespace mica::hub;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::Expected<std::vector<RemoteFile>> files = parseListing(text, "fuzz");
  if (!files) {
    llvm::consumeError(files.takeError());
    return 0;
  }
  // No path may be outside of the folder, and no hash outside of the blobs.
  std::vector<std::string> paths;
  for (const RemoteFile &file : *files) {
    if (file.path.starts_with("/") || ("/" + file.path + "/").find("/../") != std::string::npos ||
        file.hash.find_first_not_of("0123456789abcdef") != std::string::npos)
      std::abort();
    paths.push_back(file.path);
  }
  for (const char *selection : {"", "Q4_K_M"}) {
    llvm::Expected<Selection> selected = selectFiles(paths, {"owner", "name", selection});
    if (!selected)
      llvm::consumeError(selected.takeError());
    else if (selected->files.empty())
      std::abort();
  }
  return 0;
}
