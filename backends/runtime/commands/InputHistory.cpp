#include "backends/runtime/commands/InputHistory.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::rt {

namespace {
/// Larger than any real history: only the end of a larger file is read.
constexpr off_t maxBytes = off_t(1) << 26;

std::string escaped(const std::string &turn) {
  std::string line;
  for (char c : turn) {
    if (c == '\n' || c == '\\')
      line += '\\';
    line += c == '\n' ? 'n' : c;
  }
  return line + "\n";
}

std::string unescaped(const std::string &line) {
  std::string turn;
  for (size_t at = 0; at < line.size(); ++at) {
    bool escape = line[at] == '\\' && at + 1 < line.size();
    at += escape;
    turn += escape && line[at] == 'n' ? '\n' : line[at];
  }
  return turn;
}

Error refused(const std::string &path, const char *what, const std::string &why) {
  return Error{std::string("cannot ") + what + " the history " + path + ": " + why};
}
} // namespace

Result<std::vector<std::string>> InputHistory::read(size_t maxTurns) const {
  std::vector<std::string> turns;
  struct stat about{};
  if (stat(path.c_str(), &about) != 0 && errno == ENOENT)
    return turns;
  if (S_ISDIR(about.st_mode))
    return refused(path, "read", "it is a folder");
  // Reading a pipe or a device might block forever.
  if (!S_ISREG(about.st_mode) && about.st_mode != 0)
    return refused(path, "read", "it is not a regular file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (about.st_size > maxBytes) {
    file.seekg(about.st_size - maxBytes);
    std::getline(file, line); // the rest of an incomplete line
  }
  while (std::getline(file, line))
    turns.push_back(unescaped(line));
  if (!file.eof())
    return refused(path, "read", std::strerror(errno ? errno : EIO));
  if (turns.size() > maxTurns)
    turns.erase(turns.begin(), turns.end() - static_cast<std::ptrdiff_t>(maxTurns));
  return turns;
}

Status InputHistory::append(const std::string &turn) const {
  int file = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  std::string line = escaped(turn);
  // The last line may lack a newline if another program wrote it or the disk was full.
  off_t size = file < 0 ? 0 : lseek(file, 0, SEEK_END);
  if (char last = '\n'; size > 0 && pread(file, &last, 1, size - 1) == 1 && last != '\n')
    line.insert(line.begin(), '\n');
  ssize_t written = file < 0 ? -1 : write(file, line.data(), line.size());
  int error = errno;
  if (file >= 0)
    close(file);
  if (written != static_cast<ssize_t>(line.size()))
    return refused(path, "write", std::strerror(written < 0 ? error : ENOSPC));
  return {};
}

} // namespace mica::rt
