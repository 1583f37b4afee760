#include "backends/runtime/support/TextFile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace mica::rt {

/// Longer prompts exceed every context.
static constexpr size_t maxTextBytes = size_t(1) << 30;

static int openTextFile(const std::string &path, const char *option) {
  // Input of -f may come from a pipe.
  bool piped = path == "-" && std::string_view(option) == "-f";
  return piped ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

static Error cannotRead(const std::string &path, const char *what, const char *option) {
  return Error{std::string("cannot read the ") + what + " from '" + path +
               "': " + std::strerror(errno) + "; choose another file with " + option};
}

static Error tooLarge(const std::string &path, const char *what) {
  return Error{std::string("the ") + what + " in '" + path +
               "' is larger than 1 GiB; use a shorter one"};
}

/// Reads the rest of `fd`, which may be negative.
static Result<std::string> readAll(int fd, const std::string &path, const char *what,
                                   const char *option) {
  std::string text, piece(1 << 16, '\0');
  ssize_t got = fd < 0 ? -1 : 1;
  while (got > 0 && text.size() <= maxTextBytes) {
    got = read(fd, piece.data(), piece.size());
    if (got > 0)
      text.append(piece, 0, static_cast<size_t>(got));
  }
  if (got < 0)
    return cannotRead(path, what, option);
  if (text.size() > maxTextBytes)
    return tooLarge(path, what);
  return text;
}

Result<std::string> readTextFile(const std::string &path, const char *what, const char *option) {
  int fd = openTextFile(path, option);
  Result<std::string> text = readAll(fd, path, what, option);
  if (fd >= 0)
    close(fd);
  return text;
}

TextLines::TextLines(int fd, std::string path, const char *what, const char *option)
    : fd(fd), path(std::move(path)), what(what), option(option) {}

TextLines::~TextLines() {
  if (owned)
    close(fd);
}

Result<std::unique_ptr<TextLines>> TextLines::open(const std::string &path, const char *what,
                                                   const char *option) {
  int fd = openTextFile(path, option);
  std::unique_ptr<TextLines> lines(new TextLines(fd, path, what, option));
  lines->owned = fd >= 0;
  struct stat info;
  if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    // Part of stdin may have been read already.
    lines->origin = static_cast<uint64_t>(lseek(fd, 0, SEEK_CUR));
    return lines;
  }
  Result<std::string> text = readAll(fd, path, what, option);
  if (!text)
    return text.error();
  lines->buffer = *std::move(text);
  close(std::exchange(lines->fd, -1));
  lines->owned = false;
  return lines;
}

void TextLines::goTo(uint64_t place) {
  if (place >= start && place <= start + buffer.size()) {
    at = static_cast<size_t>(place - start);
    return;
  }
  buffer.clear();
  start = place;
  at = 0;
}

Result<std::string_view> TextLines::next() {
  constexpr size_t pieceBytes = 1 << 16;
  for (size_t searched = at;;) {
    size_t begin = at, end = buffer.find('\n', searched);
    if (end != buffer.npos)
      return std::string_view(buffer).substr(begin, (at = end + 1) - begin);
    searched = buffer.size();
    if (searched - at > maxTextBytes)
      return tooLarge(path, what);
    ssize_t got = 0;
    if (fd >= 0) {
      buffer.erase(0, at);
      start += at;
      searched -= std::exchange(at, 0);
      buffer.resize(searched + pieceBytes);
      do
        got = pread(fd, buffer.data() + searched, pieceBytes,
                    static_cast<off_t>(origin + start + searched));
      while (got < 0 && errno == EINTR);
      buffer.resize(searched + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    }
    if (got < 0)
      return cannotRead(path, what, option);
    if (got == 0)
      return std::string_view(buffer).substr(std::exchange(at, buffer.size()));
  }
}

} // namespace mica::rt
