#include "backends/runtime/serve/ServeCommand.h"
#include "backends/runtime/serve/Api.h"
#include "backends/runtime/serve/ApiError.h"
#include "backends/runtime/serve/HttpServer.h"
#include "backends/runtime/serve/MemoryShares.h"
#include "backends/runtime/support/Process.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/SignalCleanup.h"
#include "backends/runtime/support/TextFile.h"
#include "backends/runtime/text/ProgramText.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <future>
#include <sstream>
#include <thread>

namespace mica::rt {

using namespace serve;

namespace {
constexpr int64_t maxDefaultSequences = 8, defaultChunk = 256;

std::string numSequences(int64_t count) {
  return std::to_string(count) + (count == 1 ? " sequence" : " sequences");
}

Result<int64_t> chooseSequences(const Model &model, const ServeArguments &arguments,
                                int64_t chunk) {
  const Manifest &manifest = model.manifest();
  uint64_t each = std::max<uint64_t>(cacheBytesPerSequence(manifest, chunk), 1);
  uint64_t budget = arguments.cacheBytes.value_or(
      defaultCacheBytes(model.memory(), model.memoryBesidesWeights(), each));
  auto fitting = static_cast<int64_t>(std::min<uint64_t>(budget / each, 1 << 20));
  if (int64_t least = arguments.sequences.value_or(1); least > fitting)
    return Error{numSequences(least) + " of " + std::to_string(manifest.maxSeq) +
                 (least == 1 ? " positions needs " : " positions need ") +
                 std::to_string(each * static_cast<uint64_t>(least)) +
                 " bytes of cache, but only " + std::to_string(budget) + " are available; " +
                 (least == 1 ? "" : "lower --sequences, ") +
                 "raise --cache-bytes, or compile with a smaller --max-seq"};
  return arguments.sequences.value_or(std::min(fitting, maxDefaultSequences));
}

/// Without spaces at both ends, which clients cannot send, or the other half of "\r\n".
std::string_view trimmed(std::string_view text) {
  static constexpr std::string_view spaces = " \t\r";
  size_t begin = std::min(text.find_first_not_of(spaces), text.size());
  return text.substr(begin, text.find_last_not_of(spaces) + 1 - begin);
}

/// The keys, read from a file with one per line; empty if none is required.
Result<std::vector<std::string>> apiKeys(const ServeArguments &arguments) {
  std::vector<std::string> keys;
  if (arguments.apiKey) {
    keys.emplace_back(trimmed(*arguments.apiKey));
    if (keys.back().empty())
      return Error{"--api-key is empty; leave it out to accept requests without a key"};
  }
  if (arguments.apiKeyFile) {
    Result<std::string> text = readTextFile(*arguments.apiKeyFile, "keys", "--api-key-file");
    if (!text)
      return text.error();
    std::string line;
    for (std::istringstream lines(*text); std::getline(lines, line);)
      if (std::string_view key = trimmed(line); !key.empty())
        keys.emplace_back(key);
    if (keys.empty())
      return Error{*arguments.apiKeyFile + " holds no key; write one per line"};
  }
  return keys;
}

/// The objects that serve requests once the model is loaded. Their threads must be stopped first;
/// see stopThreads.
struct Service {
  std::unique_ptr<Model> model;
  std::optional<ProgramText> text;
  std::optional<ChatTemplate> chatTemplate;
  int64_t sequences = 0;
  bool isOpen = false; ///< other machines may use it without an API key
  std::unique_ptr<Api> api;
  std::unique_ptr<TaskThreads> readers;
  std::unique_ptr<EngineThread> engine;
  MemoryShares memory{};

  /// Requests in progress refer to the server and to the API, which must still exist.
  void stopThreads() {
    api->abort(shuttingDown(), Outcome::Shutdown);
    engine.reset();
    readers.reset();
  }
};

/// What is left of the memory for requests; caches and buffers are touched later.
MemoryShares sharesBeside(const Model &model, uint64_t caches, uint64_t checkpoints, int64_t chunk,
                          int64_t sequences) {
  // Of calls for prompts, and of those that decode.
  uint64_t buffers = bytesOfCall(model.manifest(), chunk, sequences) +
                     bytesOfCall(model.manifest(), sequences, sequences);
  return memoryShares(model.memory(), model.memoryBesidesWeights(), caches + checkpoints + buffers);
}

Result<std::unique_ptr<Service>> startService(const ModelLoader &load,
                                              const ServeArguments &arguments,
                                              std::vector<std::string> keys) {
  auto service = std::make_unique<Service>();
  Result<std::unique_ptr<Model>> model = load();
  if (!model)
    return model.error();
  service->model = *std::move(model);
  service->model->surviveReadErrors();
  Result<ProgramText> text =
      ProgramText::load(service->model->file(), service->model->manifest(), arguments.templateFile);
  if (!text)
    return text.error();
  service->text.emplace(*std::move(text));
  const Manifest &manifest = service->text->manifest;
  if (Status good = checkSettings(arguments.drafts, manifest); !good)
    return good.error();
  ServedModel served{.name = manifest.name,
                     .manifest = manifest,
                     .text = service->text->tokenizer.get(),
                     .chatTemplate = nullptr,
                     .lookup = arguments.drafts.lookup,
                     .mtp = arguments.drafts.mtp};
  if (manifest.chat) {
    Result<ChatTemplate> loaded = service->text->chatTemplate({});
    if (!loaded)
      return loaded.error();
    service->chatTemplate.emplace(*std::move(loaded));
    served.chatTemplate = &*service->chatTemplate;
    served.answers = service->chatTemplate->answerFormat();
  }
  const HttpOptions &http = arguments.http;
  // A Unix socket is reached through a proxy, if at all.
  bool checkHosts = !arguments.allowedHosts.empty() || (!http.unixSocket && keys.empty());
  bool isLocal = http.unixSocket || Api::isLoopback(http.host) || http.host == "::1";
  service->isOpen = keys.empty() && !isLocal;
  int64_t chunk = prefillChunkSize(arguments.prefillChunk.value_or(defaultChunk), manifest);
  Result<int64_t> sequences = chooseSequences(*service->model, arguments, chunk);
  if (!sequences)
    return sequences.error();
  service->sequences = *sequences;
  Result<uint64_t> checkpoints =
      checkpointBudget(manifest, arguments.checkpointBytes, service->model->memoryBesidesWeights());
  if (!checkpoints)
    return checkpoints.error();
  uint64_t caches = cacheBytesPerSequence(manifest, chunk) * static_cast<uint64_t>(*sequences);
  service->memory = sharesBeside(*service->model, caches, *checkpoints, chunk, *sequences);
  Result<std::unique_ptr<EngineThread>> engine =
      EngineThread::start(*service->model,
                          {.slots = *sequences,
                           .promptRows = chunk,
                           .promptsShareCalls = true,
                           .promptsJoinDecode = true,
                           .checkpointBytes = *checkpoints},
                          static_cast<size_t>(arguments.queue));
  if (!engine)
    return engine.error();
  service->engine = *std::move(engine);
  service->readers = std::make_unique<TaskThreads>();
  service->api = std::make_unique<Api>(
      std::move(served), *service->engine, *service->readers, caches,
      Api::Options{.keys = std::move(keys),
                   .requestTimeout = std::chrono::seconds(arguments.requestTimeout),
                   .pingInterval = std::chrono::seconds(arguments.ssePingInterval),
                   .logPrompts = arguments.logPrompts,
                   .checkHosts = checkHosts,
                   .allowedHosts = arguments.allowedHosts,
                   .maxAnswerBytes =
                       std::min(Api::kMaxAnswerBytes, service->memory.answers / kAnswerFactor),
                   .maxReadingBytes = service->memory.reading});
  return service;
}

/// Ends the process without waiting for its threads.
[[noreturn]] void endNow(HttpServer &server) {
  server.stopAccepting();
  removeTemporaries();
  std::_Exit(0);
}

/// The process ends because a rank has failed, and the engine may wait for that rank: requests in
/// progress get the error from the server's thread.
void failRequests(HttpServer &server, Api &api, const Error &error) {
  // A client that does not read does not prevent the end.
  constexpr std::chrono::milliseconds patience{400};
  auto idle = std::make_shared<std::promise<void>>();
  server.after(std::chrono::milliseconds(0), [&server, &api, error, idle] {
    server.stopAccepting();
    api.drain();
    api.abort({.status = 500, .message = error.message}, Outcome::Failed);
    server.repeat(std::chrono::milliseconds(5), [&server, idle] {
      if (server.exchanges() > 0)
        return true;
      idle->set_value();
      return false;
    });
  });
  idle->get_future().wait_for(patience);
}

/// Stops the server when no exchange is in progress. At the deadline, remaining requests end with
/// an error, and soon after it the process, even if the engine is in the middle of a long step.
void stopWhenIdle(HttpServer &server, Service &service,
                  std::chrono::steady_clock::time_point deadline) {
  // The errors have at least 5 s to be sent, and more on a busy machine, which calls this later;
  // then the step has a second.
  constexpr int maxCalls = 250, maxIdleCalls = 50;
  constexpr std::chrono::milliseconds interval{20};
  server.repeat(interval, [&server, &service, deadline, calls = 0]() mutable {
    // Requests that have not arrived completely get a reply as well.
    bool isIdle = server.exchanges() == 0 && server.receiving() == 0;
    // Of several ranks, one may have ended, for which the engine waits; mpirun ends the others.
    bool isLeader = service.model->isLeader();
    if (isIdle && (isLeader || service.engine->unfinished() == 0)) {
      server.stop();
      return false;
    }
    if (std::chrono::steady_clock::now() < deadline)
      return true;
    server.rejectUnreceived();
    service.api->abort(shuttingDown(), Outcome::Shutdown);
    if (++calls <= (isIdle ? maxIdleCalls : maxCalls))
      return true;
    if (!isLeader)
      endNow(server);
    server.stop();
    return false;
  });
}
} // namespace

uint64_t defaultCacheBytes(uint64_t available, uint64_t besidesWeights, uint64_t ofSequence) {
  uint64_t budget = besidesWeights / 2;
  return budget < ofSequence && ofSequence <= available / 2 ? ofSequence : budget;
}

Status serveCommand(const ModelLoader &load, const ServeArguments &arguments) {
  // A client that disconnects during a write only ends its connection.
  std::signal(SIGPIPE, SIG_IGN);
  Result<std::vector<std::string>> keys = apiKeys(arguments);
  if (!keys)
    return keys.error();

  // Both are set on the server's thread.
  std::unique_ptr<Service> service;
  std::optional<Error> failure;
  HttpOptions http = arguments.http;
  http.receiveTimeout = std::chrono::seconds(arguments.receiveTimeout);
  http.idleTimeout = std::chrono::seconds(arguments.idleTimeout);
  http.sendTimeout = std::chrono::seconds(arguments.sendTimeout);
  Result<std::unique_ptr<HttpServer>> listening = HttpServer::listen(
      http,
      [&](HttpRequest request, std::shared_ptr<Exchange> exchange) {
        service ? service->api->handle(std::move(request), std::move(exchange))
                : exchange->reply(*Api::rejectionWhileLoading(request));
      },
      [&](const HttpRequest &header) {
        return service ? service->api->rejection(header) : Api::rejectionWhileLoading(header);
      },
      [&](unsigned status) {
        if (service)
          service->api->countRejection(status);
      });
  if (!listening)
    return listening.error();
  HttpServer &server = **listening;
  server.onSignal([&](int count) {
    // Neither loading a model nor a step of the engine can be interrupted.
    if (count > 1 || !service)
      endNow(server);
    // If there are several ranks, mpirun, which sends the signal, ends them shortly after it.
    int64_t seconds = service->model->isLeader() ? 0 : arguments.drainSeconds;
    reportNote("shutting down: requests in progress have " + std::to_string(seconds) +
               " s to finish");
    service->api->drain();
    server.stopAccepting();
    stopWhenIdle(server, *service,
                 std::chrono::steady_clock::now() + std::chrono::seconds(seconds));
  });
  std::thread loader([&, keys = *std::move(keys)]() mutable {
    auto started = std::make_shared<Result<std::unique_ptr<Service>>>(
        startService(load, arguments, std::move(keys)));
    server.after(std::chrono::milliseconds(0), [&, started] {
      if (!*started) {
        failure = started->error();
        return server.stop();
      }
      service = *std::move(*started);
      throwOutOfMemory();
      server.limitMemory(service->memory.requests, service->memory.streams);
      if (Communicator *ranks = service->model->runtime().communicator())
        ranks->onFailure([&server, api = service->api.get()](const Error &error) {
          failRequests(server, *api, error);
        });
      reportNote("serving " + service->model->manifest().name + " at " + server.address() + " (" +
                 numSequences(service->sequences) + " of " +
                 std::to_string(service->model->manifest().maxSeq) + " positions)");
      if (service->isOpen)
        reportWarning("no API key is required: other machines that can reach " + server.address() +
                      " can use the model; use --api-key-file");
    });
  });
  server.run();
  loader.join();
  if (service) {
    service->stopThreads();
    if (Communicator *ranks = service->model->runtime().communicator())
      ranks->onFailure({});
  }
  if (failure)
    return *failure;
  return {};
}

} // namespace mica::rt
