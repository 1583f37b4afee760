#include "backends/cpu/runtime/BatchResults.h"
#include "backends/cpu/runtime/NestedJson.h"
#include "backends/cpu/runtime/Output.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::rt {

namespace {
/// How every line begins that this program has written.
constexpr std::string_view opening = "{\"line\":";

Result<std::string> readAll(int fd) {
  std::string text, piece(1 << 16, '\0');
  for (;;) {
    ssize_t got = pread(fd, piece.data(), piece.size(), static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return Error{std::strerror(errno)};
    if (got == 0)
      return text;
    text.append(piece, 0, static_cast<size_t>(got));
  }
}

/// Whether `line` is a result of `text`.
bool isResultOf(std::string_view line, const BatchText &text) {
  std::string problem;
  auto json = parseNested<nlohmann::ordered_json>(line, problem);
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
               ", choose another file with -o"};
}

BatchResults::~BatchResults() {
  if (!path.empty())
    close(fd);
}

Status BatchResults::resume(const std::vector<BatchText> &texts) {
  Result<std::string> there = readAll(fd);
  if (!there)
    return failed();
  std::string_view rest = *there;
  auto refuse = [&](const std::string &why) {
    return Error{"line " + std::to_string(next + 1) + " of '" + path + "' " + why +
                 ", choose another file with -o"};
  };
  while (!rest.empty()) {
    size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    if (end == rest.npos) {
      // What was interrupted is made again; nothing else is cut off.
      if (!line.starts_with(opening) && !opening.starts_with(line))
        return refuse("is no result of a batch");
      if (ftruncate(fd, static_cast<off_t>(there->size() - line.size())) != 0)
        return failed();
      return {};
    }
    if (next == texts.size())
      return refuse("is one more result than is asked for");
    if (!isResultOf(line, texts[next]))
      return refuse("is not the result of line " + std::to_string(texts[next].request->line) +
                    " of the requests with these options and this program");
    ++next;
    rest.remove_prefix(end + 1);
  }
  return {};
}

Result<std::unique_ptr<BatchResults>> BatchResults::open(const std::optional<std::string> &path,
                                                         const std::vector<BatchText> &texts) {
  if (!path)
    return std::unique_ptr<BatchResults>(new BatchResults(STDOUT_FILENO, ""));
  int fd = ::open(path->c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  std::unique_ptr<BatchResults> results(new BatchResults(fd, *path));
  struct stat state;
  if (fd < 0 || fstat(fd, &state) != 0)
    return results->failed();
  if (!S_ISREG(state.st_mode)) {
    errno = EINVAL;
    return results->failed();
  }
  if (Status resumed = results->resume(texts); !resumed)
    return resumed.error();
  return results;
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
