#include "backends/runtime/commands/BatchResults.h"
#include "backends/runtime/support/NestedJson.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/TemporaryFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::rt {

namespace {
/// The beginning of every line written by this program.
constexpr std::string_view opening = "{\"line\":";

/// Whether `line` is a result of `text`.
bool isResultOf(std::string_view line, const BatchText &text) {
  std::string problem;
  auto json = parseNested(line, problem);
  if (!json.is_object())
    return false;
  auto number = [&](const char *key) {
    auto found = json.find(key);
    return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
  };
  auto id = json.find("id"), digest = json.find("digest");
  return number("line") == text.request->line && number("sample") == text.sample &&
         number("prompt_tokens") == static_cast<int64_t>(text.request->prompt.size()) &&
         (id == json.end() ? "" : id->dump()) == text.request->id && digest != json.end() &&
         *digest == text.digest;
}
} // namespace

Error BatchResults::failed() const {
  return Error{"cannot write the results to '" + path + "': " + std::strerror(errno) +
               "; choose another file with -o"};
}

Error BatchResults::busy() const {
  return Error{"another batch is writing to '" + path +
               "'; wait until it has finished or choose another file with -o"};
}

Error BatchResults::refused(const std::string &why) const {
  return Error{"line " + std::to_string(next + 1) + " of '" + path + "' " + why +
               "; choose another file with -o"};
}

BatchResults::~BatchResults() {
  if (!path.empty() && fd >= 0)
    close(fd);
}

/// Whether the file is not locked by another process; always true on file systems without locks.
static bool lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

Result<std::unique_ptr<BatchResults>> BatchResults::open(const std::optional<std::string> &path) {
  if (!path)
    return std::unique_ptr<BatchResults>(new BatchResults(STDOUT_FILENO, ""));
  if (Status usable = checkTarget(*path, {}, "choose another file with -o"); !usable)
    return Error{"'" + *path + "' " + usable.error().message};
  int fd = ::open(path->c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  std::unique_ptr<BatchResults> results(new BatchResults(fd, *path));
  if (fd < 0 && errno == ENOENT)
    return results;
  struct stat state;
  if (fd < 0 || fstat(fd, &state) != 0)
    return results->failed();
  if (!S_ISREG(state.st_mode)) {
    errno = EINVAL;
    return results->failed();
  }
  if (!lock(fd))
    return results->busy();
  results->lines = std::make_unique<TextLines>(fd, *path, "results", "-o");
  return results;
}

Result<std::string_view> BatchResults::nextLine() {
  Result<std::string_view> line = lines ? lines->next() : std::string_view();
  if (!line || line->empty())
    return line;
  if (!line->ends_with('\n')) {
    // An incomplete line is removed and computed again; nothing else is cut off.
    if (!line->starts_with(opening) && !opening.starts_with(*line))
      return refused("is not a result of a batch");
    cut = true;
    return std::string_view();
  }
  whole += line->size();
  line->remove_suffix(1);
  // A result is never empty.
  return line->empty() ? Result<std::string_view>(refused("is not a result of a batch")) : line;
}

Result<bool> BatchResults::holds(const BatchText &text) {
  Result<std::string_view> line = nextLine();
  if (!line)
    return line.error();
  if (line->empty())
    return false;
  if (!isResultOf(*line, text))
    return refused("is not the result of line " + std::to_string(text.request->line) +
                   " of the requests with these options and this program");
  ++next;
  return true;
}

/// Creates the file, which did not exist when it was opened.
Status BatchResults::make() {
  fd = ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  struct stat state;
  if (fd < 0 || fstat(fd, &state) != 0)
    return failed();
  return lock(fd) && state.st_size == 0 ? Status() : busy();
}

Status BatchResults::begin() {
  if (path.empty())
    return {};
  if (fd < 0)
    return make();
  Result<std::string_view> line = nextLine();
  if (!line)
    return line.error();
  if (!line->empty())
    return refused("is one result more than requested");
  lines.reset();
  return !cut || ftruncate(fd, static_cast<off_t>(whole)) == 0 ? Status() : failed();
}

Status BatchResults::add(size_t index, std::string line) {
  waiting.emplace(index, std::move(line));
  for (auto first = waiting.begin(); first != waiting.end() && first->first == next;
       first = waiting.erase(first), ++next)
    if (Status written = writeTo(fd, first->second + "\n"); !written)
      return path.empty() ? written : failed();
  return {};
}

} // namespace mica::rt
