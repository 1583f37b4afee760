//===- ScoringProcess.cpp - programs that return logits -------------------===//

#include "tools/quality/ScoringProcess.h"

#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;

extern char **environ;

namespace mica::tool {

static void closeFile(int &fd) {
  if (fd >= 0)
    ::close(fd);
  fd = -1;
}

Expected<std::unique_ptr<ScoringProcess>> ScoringProcess::start(std::string path,
                                                                std::vector<std::string> options) {
  std::unique_ptr<ScoringProcess> program(new ScoringProcess(std::move(path)));
  if (Error error = program->spawn(std::move(options)))
    return std::move(error);
  return std::move(program);
}

Error ScoringProcess::spawn(std::vector<std::string> options) {
  auto cannot = [&](int reason) {
    return createStringError(path + ": cannot be started (" + std::strerror(reason) +
                             "); pass an executable program");
  };
  int request[2] = {-1, -1}, row[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, request) != 0)
    return cannot(errno);
  requests = request[0];
  messages = ::memfd_create("mica-messages", MFD_CLOEXEC);
  if (messages < 0 || ::pipe2(row, O_CLOEXEC) != 0) {
    int reason = errno;
    ::close(request[1]);
    return cannot(reason);
  }
  rows = row[0];
  // A megabyte at a time, or less if that is not allowed.
  ::fcntl(rows, F_SETPIPE_SZ, 1 << 20);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, request[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, row[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, messages, STDERR_FILENO);
  options.insert(options.begin(), {path, "score"});
  std::vector<char *> words;
  for (std::string &option : options)
    words.push_back(option.data());
  words.push_back(nullptr);
  int reason = ::posix_spawn(&process, path.c_str(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(request[1]);
  ::close(row[1]);
  if (reason == 0)
    return Error::success();
  process = -1;
  return cannot(reason);
}

int ScoringProcess::wait() {
  int status = 0;
  while (process > 0 && ::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  process = -1;
  return status;
}

/// The content of an in-memory file.
static std::string contentsOf(int fd) {
  std::string text;
  char piece[4096];
  for (ssize_t got; (got = ::pread(fd, piece, sizeof piece, static_cast<off_t>(text.size()))) > 0;)
    text.append(piece, static_cast<size_t>(got));
  return text;
}

ScoringProcess::~ScoringProcess() {
  closeFile(requests);
  closeFile(rows);
  wait();
  if (messages >= 0)
    errs() << contentsOf(messages);
  closeFile(messages);
}

Error ScoringProcess::failure() {
  closeFile(requests);
  closeFile(rows);
  return failureOf(wait());
}

Error ScoringProcess::failureOf(int status) {
  std::string text = contentsOf(messages);
  closeFile(messages);
  if (WIFSIGNALED(status))
    return createStringError(path + ": was terminated by signal " + Twine(WTERMSIG(status)) + " (" +
                             ::strsignal(WTERMSIG(status)) + ") while it computed logits");
  // Its last line states the reason, in Mica's format.
  StringRef line = StringRef(text).rtrim('\n').rsplit('\n').second;
  line = line.empty() ? StringRef(text).rtrim('\n') : line;
  line.consume_front("mica: error: ");
  return createStringError(line.empty() ? path + ": exited without an answer" : line.str());
}

Error ScoringProcess::finish() {
  closeFile(requests);
  int status = wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return Error::success();
  return failureOf(status);
}

Error ScoringProcess::ask(size_t length, size_t total, size_t first, ArrayRef<int32_t> ids) {
  std::string line =
      std::to_string(length) + "/" + std::to_string(total) + " " + std::to_string(first);
  for (int32_t id : ids)
    line += " " + std::to_string(id);
  line += "\n";
  for (StringRef rest = line; !rest.empty();) {
    ssize_t sent = ::send(requests, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0)
      return failure();
    rest = rest.drop_front(static_cast<size_t>(sent));
  }
  return Error::success();
}

Error ScoringProcess::read(MutableArrayRef<float> values) {
  char *next = reinterpret_cast<char *>(values.data());
  for (size_t left = values.size() * sizeof(float); left > 0;) {
    ssize_t got = ::read(rows, next, left);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return failure();
    next += got;
    left -= static_cast<size_t>(got);
  }
  return Error::success();
}

} // namespace mica::tool
