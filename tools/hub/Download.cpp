//===- Download.cpp - a file of the hub to a blob of the cache ------------===//

#include "tools/hub/Download.h"

#include "backends/runtime/support/TemporaryFile.h"
#include "frontend/support/InputError.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SHA1.h"
#include "llvm/Support/SHA256.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;

namespace mica::hub {
namespace {

/// The hash that identifies a file on the hub: SHA-256, or git's blob hash of small files.
class FileHash {
public:
  explicit FileHash(const RemoteFile &file) : file(file) { reset(); }

  void reset() {
    sha256.init();
    sha1.init();
    if (!file.isLfs())
      sha1.update(StringRef("blob " + std::to_string(file.size) + std::string(1, '\0')));
  }
  void update(ArrayRef<uint8_t> bytes) {
    if (file.isLfs())
      sha256.update(bytes);
    else
      sha1.update(bytes);
  }
  /// Hexadecimal.
  std::string digest() {
    return file.isLfs() ? toHex(sha256.final(), /*LowerCase=*/true)
                        : toHex(sha1.final(), /*LowerCase=*/true);
  }

private:
  const RemoteFile &file;
  SHA256 sha256;
  SHA1 sha1;
};

/// BLOB.incomplete while it grows. It is not removed by signals, so that a download can be resumed.
class UnfinishedBlob {
public:
  UnfinishedBlob(const RemoteFile &file, std::string blob)
      : file(file), blob(std::move(blob)), path(this->blob + ".incomplete"), hash(file) {}
  ~UnfinishedBlob() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  UnfinishedBlob(const UnfinishedBlob &) = delete;
  UnfinishedBlob &operator=(const UnfinishedBlob &) = delete;

  /// Opens the file and resumes from its content.
  Error open(OnProgress progress);
  Error append(ArrayRef<uint8_t> bytes);
  Error startOver();
  /// Whether the bytes have the right hash.
  bool isIntact() { return hash.digest() == file.hash; }
  Error commit();
  void discard() { ::unlink(path.c_str()); }
  uint64_t size() const { return bytes; }

private:
  Error failed() const {
    return createStringError(path + ": " +
                             rt::cannotBeWritten(errno, "set HF_HOME to a folder with free space"));
  }

  const RemoteFile &file;
  std::string blob, path;
  FileHash hash;
  int descriptor = -1;
  uint64_t bytes = 0;
};

Error UnfinishedBlob::open(OnProgress progress) {
  descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  struct stat status;
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0)
    return failed();
  if (static_cast<uint64_t>(status.st_size) > file.size)
    return startOver();
  std::vector<uint8_t> piece(1 << 20);
  while (true) {
    ssize_t count = ::pread(descriptor, piece.data(), piece.size(), static_cast<off_t>(bytes));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return startOver();
    if (count == 0)
      return Error::success();
    hash.update(ArrayRef(piece).take_front(static_cast<size_t>(count)));
    bytes += static_cast<uint64_t>(count);
    progress(file.path, bytes);
  }
}

Error UnfinishedBlob::append(ArrayRef<uint8_t> more) {
  hash.update(more);
  while (!more.empty()) {
    ssize_t count = ::pwrite(descriptor, more.data(), more.size(), static_cast<off_t>(bytes));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failed();
    bytes += static_cast<uint64_t>(count);
    more = more.drop_front(static_cast<size_t>(count));
  }
  return Error::success();
}

Error UnfinishedBlob::startOver() {
  hash.reset();
  bytes = 0;
  return ::ftruncate(descriptor, 0) == 0 ? Error::success() : failed();
}

Error UnfinishedBlob::commit() {
  // Later runs trust a blob of the right size, so its bytes must be on disk before it gets its
  // name.
  bool isSynced = ::fsync(descriptor) == 0;
  bool isClosed = ::close(std::exchange(descriptor, -1)) == 0;
  return isSynced && isClosed && std::rename(path.c_str(), blob.c_str()) == 0 ? Error::success()
                                                                              : failed();
}

} // namespace

bool isPresent(const std::string &blob, const RemoteFile &file) {
  uint64_t size = 0;
  return !sys::fs::file_size(blob, size) && size == file.size;
}

static Error contradicts(const RemoteFile &file, const Twine &what) {
  return inputError(file.path, what, "try again, or check HF_ENDPOINT");
}

/// Whether the response is for the listed file and, if there are bytes already, continues them.
static Error checkHead(const HttpHead &head, const RemoteFile &file, UnfinishedBlob &blob) {
  StringRef etag = head.header("x-linked-etag");
  etag.consume_front("W/");
  if (!etag.empty() && etag.trim('"') != file.hash)
    return contradicts(file, "differs from the hub's listing");
  if (head.status == 200 && blob.size() > 0)
    if (Error error = blob.startOver())
      return error;
  uint64_t length = 0;
  if (!head.header("content-length").getAsInteger(10, length) && blob.size() + length != file.size)
    return contradicts(file, "has " + Twine(blob.size() + length) +
                                 " bytes, but the hub's listing says " + Twine(file.size));
  StringRef range = head.header("content-range");
  uint64_t from = 0;
  if (head.status == 206 && (!range.consume_front("bytes ") ||
                             range.split('-').first.getAsInteger(10, from) || from != blob.size()))
    return contradicts(file, "is not the part that was requested");
  return Error::success();
}

/// Sends a request for the missing bytes.
static Error fetch(HttpClient &http, const std::string &url, const RemoteFile &file,
                   UnfinishedBlob &blob, OnProgress progress, OnRefusal refusal) {
  auto onHead = [&](const HttpHead &head) { return checkHead(head, file, blob); };
  auto onBytes = [&](ArrayRef<uint8_t> bytes) -> Error {
    if (bytes.size() > file.size - blob.size())
      return contradicts(file, "has more bytes than the hub's listing says");
    if (Error error = blob.append(bytes))
      return error;
    progress(file.path, blob.size());
    return Error::success();
  };
  Expected<HttpHead> head = http.get(url, blob.size(), onHead, onBytes);
  if (!head)
    return head.takeError();
  // The range is invalid: the existing bytes are not the beginning of this file.
  if (head->status == 416 && blob.size() > 0) {
    if (Error error = blob.startOver())
      return error;
    return make_error<TransientError>(file.path + ": cannot be resumed", 0);
  }
  if (head->status < 200 || head->status >= 300)
    return refusal(*head);
  if (blob.size() < file.size)
    return make_error<TransientError>(file.path + ": ended early", 0);
  return Error::success();
}

Error download(HttpClient &http, const std::string &url, const RemoteFile &file,
               const std::string &blob, OnProgress progress, OnRefusal refusal) {
  // Bytes left by another process may be damaged, which the hash shows at the end; then all bytes
  // are downloaded again.
  for (bool isResumed = true; isResumed;) {
    UnfinishedBlob unfinished(file, blob);
    if (Error error = unfinished.open(progress))
      return error;
    isResumed = unfinished.size() > 0;
    auto attempt = [&]() -> Error {
      return unfinished.size() == file.size ? Error::success()
                                            : fetch(http, url, file, unfinished, progress, refusal);
    };
    auto size = [&] { return unfinished.size(); };
    auto waiting = [&](StringRef reason) { progress(reason, unfinished.size()); };
    if (Error error = HttpClient::retry(attempt, size, waiting))
      return error;
    if (unfinished.isIntact())
      return unfinished.commit();
    unfinished.discard();
  }
  return contradicts(file, "does not match the hash in the hub's listing");
}

} // namespace mica::hub
