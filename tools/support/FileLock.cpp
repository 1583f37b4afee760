//===- FileLock.cpp - exclusive lock files --------------------------------===//

#include "tools/support/FileLock.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::tool {

/// Whether `file` is still the file of `descriptor`: a lock file may have been removed between
/// opening and locking it, and another process may have created a new one.
static bool isStill(const std::string &file, int descriptor) {
  struct stat named, opened;
  return ::stat(file.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

std::optional<FileLock> FileLock::take(const std::string &file, Wait wait) {
  while (true) {
    int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0)
      return std::nullopt;
    int status;
    while ((status = ::flock(descriptor, LOCK_EX | (wait == Wait::No ? LOCK_NB : 0))) < 0 &&
           errno == EINTR)
      continue;
    if (status == 0 && isStill(file, descriptor))
      return FileLock(descriptor);
    int reason = errno;
    ::close(descriptor);
    errno = reason;
    if (status < 0)
      return std::nullopt;
  }
}

FileLock::~FileLock() {
  if (descriptor >= 0)
    ::close(descriptor);
}

} // namespace mica::tool
