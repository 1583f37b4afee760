// A compiled model in memory: code, weights and manifest.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_MODEL_H
#define MICA_BACKENDS_RUNTIME_ENGINE_MODEL_H

#include "backends/runtime/abi/Device.h"
#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/abi/RowRole.h"
#include "backends/runtime/program/ProgramFile.h"
#include "backends/runtime/support/HugePages.h"
#include "backends/runtime/support/Memory.h"
#include "backends/runtime/support/ReadErrors.h"

#include <memory>
#include <optional>
#include <span>

namespace mica::rt {

/// Reads the manifest, checks its hash and parses it.
Result<Manifest> readManifest(const program::ProgramFile &file);

class Model {
public:
  /// The only function that the model object exports. For the descriptors see Session.h.
  using Forward = void (*)(void *const *descriptors, RowRole role, const RuntimeTable *runtime);

  /// Checks the device against the manifest, then loads the code and maps the weights; with huge
  /// pages, reads them into huge pages instead. Finally starts `threads` threads, including the
  /// caller. No code of the model object runs before the check.
  static Result<std::unique_ptr<Model>> load(program::ProgramFile file, const Device &device,
                                             unsigned threads, Pages weights = Pages::Small);
  ~Model();
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;

  const Manifest &manifest() const { return description; }
  const program::ProgramFile &file() const { return program; }
  std::span<const std::byte> weights() const { return weightBytes; }
  /// Reads all weights. Fails if their hash differs from the stored one.
  Status verifyWeights() const;
  /// After this call, a page of weights that cannot be read from disk does not terminate the
  /// process; instead, checkReadable fails. For one model at a time.
  void surviveReadErrors() { readErrors.emplace(weightMapping.bytes()); }
  /// Fails if a page of weights could not be read since surviveReadErrors, in which case everything
  /// computed since then is wrong.
  Status checkReadable() const;
  /// The number of touched bytes of weights that are in huge pages.
  uint64_t weightsInHugePages() const { return bytesInHugePages(weightBytes.data()); }
  /// The runtime that the code uses.
  Runtime &runtime() const { return *ownRuntime; }
  void forward(void *const *descriptors, RowRole role) const {
    entry(descriptors, role, &ownRuntime->table());
  }
  /// The address of a symbol of the model object, or null.
  const void *symbol(const char *name) const;

private:
  Model(program::ProgramFile file, Manifest manifest)
      : program(std::move(file)), description(std::move(manifest)) {}
  Status loadCode();
  Status mapWeights();
  Status readWeights();
  Status checkWeights() const;
  Status start(const Device &device, unsigned threads);

  program::ProgramFile program;
  Manifest description;
  Mapping weightMapping;
  Memory weightMemory;                    ///< instead
  std::span<const std::byte> weightBytes; ///< in the mapping or in memory
  std::optional<ReadErrorGuard> readErrors;
  /// The file of the code, open as long as the code is loaded: dlopen identifies objects by name,
  /// and the file of another model would have the same one.
  int codeFile = -1;
  void *library = nullptr;
  Forward entry = nullptr;
  std::unique_ptr<Runtime> ownRuntime;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_MODEL_H
