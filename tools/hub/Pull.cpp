//===- Pull.cpp - a model of the hub into the cache -----------------------===//

#include "tools/hub/Pull.h"

#include "backends/runtime/support/SizeText.h"
#include "backends/runtime/support/TemporaryFile.h"
#include "frontend/support/InputError.h"
#include "tools/hub/Download.h"
#include "tools/hub/HubCache.h"
#include "tools/support/FileLock.h"
#include "tools/support/Support.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>

using namespace llvm;

namespace mica::hub {
namespace {

class Puller {
public:
  Puller(const HubName &name, const HubSettings &settings, OnPullProgress progress)
      : name(name), settings(settings), cache(settings.cacheFolder),
        http(settings.endpoint, settings.token, settings.stallSeconds), progress(progress) {}

  Expected<std::string> pull();

private:
  struct Page {
    std::string text, next;
  };
  Error refusal(const HttpHead &head, StringRef url) const;
  Expected<Page> read(const std::string &url);
  Expected<std::string> readCommit();
  Expected<std::vector<RemoteFile>> readListing();
  Expected<tool::FileLock> lock(StringRef hash);
  Error checkRoom(ArrayRef<const RemoteFile *> wanted) const;
  Error fetch(const RemoteFile &file);
  Error fetch(ArrayRef<std::string> paths);

  const HubName &name;
  const HubSettings &settings;
  HubCache cache;
  HttpClient http;
  OnPullProgress progress;
  std::string commit;
  std::vector<RemoteFile> files;
  uint64_t here = 0, all = 0; ///< bytes of finished files, and of all files to download
};

/// The error for a status that the hub returns instead of a listing or a file.
Error Puller::refusal(const HttpHead &head, StringRef url) const {
  std::string page = settings.endpoint + "/" + name.repository();
  StringRef code = head.header("x-error-code");
  if (code == "GatedRepo" || head.status == 403)
    return inputError(name.text(), "is gated, or the token may not read it",
                      "accept its terms at " + page + " and set HF_TOKEN");
  if (head.status == 401 && settings.token.empty())
    return inputError(name.text(), "does not exist at " + settings.endpoint + " or is private",
                      "check the name, or set HF_TOKEN");
  if (head.status == 401)
    return inputError(name.text(), "is not accessible with this token at " + settings.endpoint,
                      "check the name and HF_TOKEN");
  if (head.status == 404)
    return inputError(name.text(), "does not exist at " + settings.endpoint, "check the name");
  return inputError(url, "answers with status " + Twine(head.status), "check HF_ENDPOINT");
}

Expected<Puller::Page> Puller::read(const std::string &url) {
  constexpr size_t maxPageBytes = 32 << 20;
  Page page;
  auto attempt = [&]() -> Error {
    page = {};
    auto onHead = [&](const HttpHead &head) {
      page.next = nextPage(head.header("link")).str();
      return Error::success();
    };
    auto onBytes = [&](ArrayRef<uint8_t> bytes) -> Error {
      if (page.text.size() + bytes.size() > maxPageBytes)
        return inputError(url, "answers with too many bytes", "check HF_ENDPOINT");
      page.text.append(bytes.begin(), bytes.end());
      return Error::success();
    };
    Expected<HttpHead> head = http.get(url, 0, onHead, onBytes);
    if (!head)
      return head.takeError();
    return head->status >= 200 && head->status < 300 ? Error::success() : refusal(*head, url);
  };
  auto waiting = [&](StringRef reason) { progress(reason, 0, 1); };
  if (Error error = HttpClient::retry(attempt, [] { return 0; }, waiting))
    return std::move(error);
  return page;
}

Expected<std::string> Puller::readCommit() {
  std::string url = settings.endpoint + "/api/models/" + name.repository() + "/revision/main";
  Expected<Page> page = read(url);
  return page ? parseCommit(page->text, url) : page.takeError();
}

Expected<std::vector<RemoteFile>> Puller::readListing() {
  constexpr size_t maxPages = 1000, maxFiles = 100'000;
  std::string url = settings.endpoint + "/api/models/" + name.repository() + "/tree/" + commit +
                    "?recursive=true";
  std::vector<RemoteFile> files;
  for (size_t i = 0; i < maxPages && files.size() < maxFiles; ++i) {
    Expected<Page> page = read(url);
    if (!page)
      return page.takeError();
    Expected<std::vector<RemoteFile>> more = parseListing(page->text, url);
    if (!more)
      return more.takeError();
    append_range(files, *more);
    if (page->next.empty())
      return files;
    url = page->next;
  }
  return inputError(name.text(), "has too many files", "choose another repository");
}

/// Waits for the lock of a blob, or of the repository if the name is "mica".
Expected<tool::FileLock> Puller::lock(StringRef hash) {
  std::string file = cache.lockFile(name, hash);
  std::string hint = "set HF_HOME to another folder";
  if (std::error_code error = sys::fs::create_directories(sys::path::parent_path(file)))
    return inputError(sys::path::parent_path(file), "cannot be created (" + error.message() + ")",
                      hint);
  std::optional<tool::FileLock> held = tool::FileLock::take(file, tool::FileLock::Wait::No);
  if (!held && errno == EWOULDBLOCK) {
    progress("waiting for another download", here, all);
    held = tool::FileLock::take(file, tool::FileLock::Wait::Yes);
  }
  if (held)
    return std::move(*held);
  return createStringError(file + ": " + rt::cannotBeWritten(errno, hint));
}

/// Whether the file system has enough space for the remaining bytes.
Error Puller::checkRoom(ArrayRef<const RemoteFile *> wanted) const {
  ErrorOr<sys::fs::space_info> space = sys::fs::disk_space(cache.path());
  uint64_t needed = 0;
  for (const RemoteFile *file : wanted) {
    std::string blob = cache.blob(name, file->hash);
    uint64_t begun = 0;
    if (!isPresent(blob, *file))
      needed += sys::fs::file_size(blob + ".incomplete", begun)
                    ? file->size
                    : file->size - std::min(begun, file->size);
  }
  if (!space || space->available >= needed)
    return Error::success();
  return inputError(cache.path(),
                    "has " + rt::bytesText(static_cast<double>(space->available)) +
                        " free of the " + rt::bytesText(static_cast<double>(needed)) + " that " +
                        name.text() + " needs",
                    "free space or set HF_HOME to a folder with free space");
}

Error Puller::fetch(const RemoteFile &file) {
  std::string blob = cache.blob(name, file.hash);
  Expected<tool::FileLock> held = lock(file.hash);
  if (!held)
    return held.takeError();
  if (isPresent(blob, file))
    return Error::success();
  std::string url = settings.endpoint + "/" + name.repository() + "/resolve/" + commit + "/" +
                    escapePath(file.path);
  auto onProgress = [&](StringRef what, uint64_t bytes) { progress(what, here + bytes, all); };
  auto onRefusal = [&](const HttpHead &head) { return refusal(head, url); };
  return download(http, url, file, blob, onProgress, onRefusal);
}

/// Downloads files of the listing to the snapshot.
Error Puller::fetch(ArrayRef<std::string> paths) {
  std::vector<const RemoteFile *> wanted;
  here = all = 0;
  for (const std::string &path : paths) {
    auto file = find_if(files, [&](const RemoteFile &file) { return file.path == path; });
    if (file == files.end())
      return inputError(name.text(), "names " + inQuotes(path) + ", which is not in the repository",
                        "choose another repository");
    wanted.push_back(&*file);
    all += file->size;
  }
  if (Error error = checkRoom(wanted))
    return error;
  for (const RemoteFile *file : wanted) {
    if (Error error = fetch(*file))
      return error;
    here += file->size;
    if (Error error = cache.link(name, commit, file->path, file->hash))
      return error;
  }
  return Error::success();
}

Expected<std::string> Puller::pull() {
  Expected<tool::FileLock> held = lock("mica");
  if (!held)
    return held.takeError();
  progress(name.text(), 0, 1);
  Expected<std::string> found = readCommit();
  if (!found)
    return found.takeError();
  commit = *found;
  Expected<std::vector<RemoteFile>> listing = readListing();
  if (!listing)
    return listing.takeError();
  files = std::move(*listing);
  std::vector<std::string> paths;
  paths.reserve(files.size());
  for (const RemoteFile &file : files)
    paths.push_back(file.path);
  Expected<Selection> selection = selectFiles(paths, name);
  if (!selection)
    return selection.takeError();
  std::string blobs = sys::path::parent_path(cache.blob(name, "x")).str();
  if (std::error_code error = sys::fs::create_directories(blobs))
    return inputError(blobs, "cannot be created (" + error.message() + ")",
                      "set HF_HOME to another folder");
  if (Error error = fetch(selection->files))
    return std::move(error);
  std::string folder = cache.snapshot(name, commit);
  Expected<std::vector<std::string>> shards = readShards(*selection, folder);
  if (!shards)
    return shards.takeError();
  if (Error error = fetch(*shards))
    return std::move(error);
  if (Error error = cache.setMainCommit(name, commit))
    return std::move(error);
  return selection->model.empty() ? folder : folder + "/" + selection->model;
}

} // namespace

Expected<std::string> pull(const HubName &name, const HubSettings &settings,
                           OnPullProgress progress) {
  return Puller(name, settings, progress).pull();
}

} // namespace mica::hub
