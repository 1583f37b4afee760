#include "tests/fuzz/GgufChecks.h"

#include <sys/mman.h>
#include <unistd.h>

namespace {

/// The input as a file that only this process can open: models are opened by their path.
class MemoryFile {
public:
  MemoryFile(const uint8_t *data, size_t size) : file(memfd_create("fuzz", 0)) {
    if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size))
      std::abort();
  }
  ~MemoryFile() { close(file); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file); }

private:
  int file;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mica::test::checkGgufModel(MemoryFile(data, size).path());
  return 0;
}
