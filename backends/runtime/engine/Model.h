// A compiled model in memory: code, weights and manifest.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_MODEL_H
#define MICA_BACKENDS_RUNTIME_ENGINE_MODEL_H

#include "backends/runtime/abi/Device.h"
#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/abi/Resources.h"
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

/// Fails, on all ranks, unless as many ranks as the program is for run it, all of them the same
/// program. Called by all ranks.
Status checkRanks(const program::ProgramFile &file, const Manifest &manifest, Communicator &ranks);

class Model {
public:
  /// The only function that the model object exports. For the descriptors see Session.h.
  using Forward = void (*)(void *const *descriptors, RowRole role, const RuntimeTable *runtime);

  /// Checks the device against the manifest, then loads the code and maps the weights; with huge
  /// pages, reads them into huge pages instead. Finally starts the threads of `resources`. No code
  /// of the model object runs before the check. A program for several ranks needs as many: those of
  /// `ranks`, which must outlive the model. The weights are those of the rank.
  static Result<std::unique_ptr<Model>> load(program::ProgramFile file, const Device &device,
                                             const Resources &resources,
                                             Pages weights = Pages::Small,
                                             Communicator *ranks = nullptr);
  ~Model();
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;

  const Manifest &manifest() const { return description; }
  const program::ProgramFile &file() const { return program; }
  std::span<const std::byte> weights() const { return weightBytes; }
  /// Bytes of memory that are available to this process: see availableMemory. If there are several
  /// ranks, a share that is the same for all, of what was available before they loaded the model.
  uint64_t memory(const std::string &root = "") const;
  /// Bytes of it that can be allocated before the system evicts the weights: without those that are
  /// mapped, because memory with contents of files counts as available.
  uint64_t memoryBesidesWeights(const std::string &root = "") const;
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
  /// Whether the other ranks compute what this one tells them: see Session::follow.
  bool isLeader() const { return ranks && ranks->rank() == 0; }
  /// The runtime that the code uses.
  Runtime &runtime() const { return *ownRuntime; }
  void forward(void *const *descriptors, RowRole role) const {
    Computation computation(ranks);
    entry(descriptors, role, &ownRuntime->table());
  }
  /// The address of a symbol of the model object, or null.
  const void *symbol(const char *name) const;

private:
  Model(program::ProgramFile file, Manifest manifest, const Resources &resources,
        Communicator *ranks)
      : program(std::move(file)), description(std::move(manifest)), resources(resources),
        ranks(ranks) {}
  program::Section ownWeights() const;
  Status loadCode();
  Status mapWeights();
  Status readWeights();
  Status checkWeights() const;
  Status start(const Device &device);

  program::ProgramFile program;
  Manifest description;
  Resources resources;
  Communicator *ranks; ///< null: this process runs the model alone
  Mapping weightMapping;
  Memory weightMemory;                    ///< instead
  std::span<const std::byte> weightBytes; ///< in the mapping or in memory
  std::optional<ReadErrorGuard> readErrors;
  /// The file of the code, open as long as the code is loaded: dlopen identifies objects by name,
  /// and the file of another model would have the same one.
  int codeFile = -1;
  void *library = nullptr;
  bool isLoaded = false; ///< completely
  Forward entry = nullptr;
  std::unique_ptr<Runtime> ownRuntime;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_MODEL_H
