// Runs commands in a shell.
#ifndef MICA_TESTS_UNIT_BACKENDS_RUNTIME_SHELL_H
#define MICA_TESTS_UNIT_BACKENDS_RUNTIME_SHELL_H

#include "tests/unit/backends/runtime/FakeProgram.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/wait.h>

namespace mica::test {

struct Outcome {
  int status; ///< 1000 + the signal that ended the command
  std::string out, err;
};

inline std::string contents(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// Runs a shell command; its output is written to files in `folder`.
inline Outcome runShell(const TemporaryFolder &folder, const std::string &command) {
  std::string out = folder.file("stdout"), err = folder.file("stderr");
  int status = std::system(("{ " + command + "; } >" + out + " 2>" + err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), contents(out),
          contents(err)};
}

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_RUNTIME_SHELL_H
