// The command `serve`: an HTTP server that runs until a signal.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_SERVECOMMAND_H
#define MICA_BACKENDS_RUNTIME_SERVE_SERVECOMMAND_H

#include "backends/runtime/engine/GenerationSettings.h"
#include "backends/runtime/engine/Model.h"
#include "backends/runtime/serve/HttpExchange.h"

#include <functional>
#include <memory>

namespace mica::rt {

struct ServeArguments {
  serve::HttpOptions http;
  std::optional<int64_t> sequences;        ///< in parallel; absent: as many as fit, at most 8
  std::optional<uint64_t> cacheBytes;      ///< of the caches; absent: half of the memory besides
                                           ///< the weights
  std::optional<uint64_t> checkpointBytes; ///< see checkpointBudget
  std::optional<int64_t> prefillChunk;     ///< see prefillChunkSize; default 256
  int64_t queue = 256;                     ///< maximum number of waiting requests
  std::optional<std::string> apiKey, apiKeyFile;
  std::vector<std::string> allowedHosts;                            ///< see Api::Options
  std::optional<std::string> templateFile;                          ///< --chat-template
  int64_t receiveTimeout = 30, sendTimeout = 30, idleTimeout = 300; ///< seconds; see HttpOptions
  int64_t requestTimeout = 0;                                       ///< seconds; 0: none
  int64_t ssePingInterval = 15; ///< seconds; see Completion::start
  int64_t drainSeconds = 30;
  bool logPrompts = false;   ///< see Completion::start
  GenerationSettings drafts; ///< `lookup` and `mtp` of all requests
};

using ModelLoader = std::function<Result<std::unique_ptr<Model>>()>;

/// The default of ServeArguments::cacheBytes, of each rank: half of the memory that is available
/// (Model::memory) besides the weights (Model::memoryBesidesWeights). A single sequence, of
/// `ofSequence` bytes, may take half of all available memory: the server then works, although
/// weights may be evicted.
uint64_t defaultCacheBytes(uint64_t available, uint64_t besidesWeights, uint64_t ofSequence);

/// Listens, loads the model on another thread, and serves it. Returns after a signal. Errors: an
/// address that cannot be used, those of `load`, caches that do not fit in memory.
Status serveCommand(const ModelLoader &load, const ServeArguments &arguments);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SERVE_SERVECOMMAND_H
