#include "backends/runtime/serve/ServeCommand.h"
#include "backends/runtime/serve/Api.h"
#include "backends/runtime/support/AvailableMemory.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/TextFile.h"
#include "backends/runtime/text/ProgramText.h"

#include <algorithm>
#include <csignal>
#include <sstream>

namespace mica::rt {

using namespace serve;

namespace {
constexpr int64_t maxDefaultSequences = 8, defaultChunk = 128;

Result<int64_t> chooseSequences(const Manifest &manifest, const ServeArguments &arguments,
                                int64_t chunk) {
  uint64_t each = std::max<uint64_t>(cacheBytesPerSequence(manifest, chunk), 1);
  uint64_t budget = arguments.cacheBytes.value_or(availableMemory("") / 2);
  auto fitting = static_cast<int64_t>(std::min<uint64_t>(budget / each, 1 << 20));
  if (fitting < 1 || (arguments.sequences && *arguments.sequences > fitting))
    return Error{std::to_string(arguments.sequences.value_or(1)) + " sequences of " +
                 std::to_string(manifest.maxSeq) + " positions need " +
                 std::to_string(each * static_cast<uint64_t>(arguments.sequences.value_or(1))) +
                 " bytes of cache, " + std::to_string(budget) +
                 " are allowed: lower --sequences, raise --cache-bytes, or compile with a "
                 "smaller --max-seq"};
  return arguments.sequences.value_or(std::min(fitting, maxDefaultSequences));
}

/// Keys, one per line; empty where none is required.
Result<std::vector<std::string>> apiKeys(const ServeArguments &arguments) {
  std::vector<std::string> keys;
  if (arguments.apiKey)
    keys.push_back(*arguments.apiKey);
  if (arguments.apiKeyFile) {
    Result<std::string> text = readTextFile(*arguments.apiKeyFile, "keys", "--api-key-file");
    if (!text)
      return text.error();
    std::string line;
    for (std::istringstream lines(*text); std::getline(lines, line);)
      if (!line.empty())
        keys.push_back(line);
    if (keys.empty())
      return Error{*arguments.apiKeyFile + " holds no key, write one per line"};
  }
  return keys;
}

/// Ends the server when no exchange is in progress any more. When the time is up, those that are
/// left end with an error.
void stopWhenIdle(HttpServer &server, Api &api, std::chrono::steady_clock::time_point deadline) {
  // For the errors to be written.
  constexpr std::chrono::seconds grace{5};
  auto now = std::chrono::steady_clock::now();
  if (server.exchanges() == 0 || now >= deadline + grace)
    return server.stop();
  if (now >= deadline)
    api.abort();
  server.after(std::chrono::milliseconds(20),
               [&server, &api, deadline] { stopWhenIdle(server, api, deadline); });
}
} // namespace

Status serveCommand(const Model &model, const ServeArguments &arguments) {
  // A client that goes away while it is written to ends its connection alone.
  std::signal(SIGPIPE, SIG_IGN);
  Result<ProgramText> text =
      ProgramText::load(model.file(), model.manifest(), arguments.templateFile);
  if (!text)
    return text.error();
  const Manifest &manifest = text->manifest;
  std::optional<ChatTemplate> chatTemplate;
  ServedModel served{.name = manifest.name,
                     .manifest = manifest,
                     .text = text->tokenizer.get(),
                     .chatTemplate = nullptr};
  if (manifest.chat) {
    Result<ChatTemplate> loaded = text->chatTemplate({});
    if (!loaded)
      return loaded.error();
    chatTemplate.emplace(*std::move(loaded));
    served.chatTemplate = &*chatTemplate;
    served.answers = chatTemplate->answerFormat();
  }
  Result<std::vector<std::string>> keys = apiKeys(arguments);
  if (!keys)
    return keys.error();
  int64_t chunk = prefillChunkSize(arguments.prefillChunk.value_or(defaultChunk), manifest);
  Result<int64_t> sequences = chooseSequences(manifest, arguments, chunk);
  if (!sequences)
    return sequences.error();

  // Destroyed in the opposite order: requests in progress refer to the server and to the API.
  std::unique_ptr<Api> api;
  HttpOptions http = arguments.http;
  http.receiveTimeout = std::chrono::seconds(arguments.receiveTimeout);
  http.idleTimeout = std::chrono::seconds(arguments.idleTimeout);
  Result<std::unique_ptr<HttpServer>> server = HttpServer::listen(
      http,
      [&api](HttpRequest request, std::shared_ptr<Exchange> exchange) {
        api->handle(std::move(request), std::move(exchange));
      },
      Api::errorBody);
  if (!server)
    return server.error();
  TaskThread reader;
  Result<std::unique_ptr<EngineThread>> engine = EngineThread::start(
      model, {.slots = *sequences, .promptRows = chunk}, static_cast<size_t>(arguments.queue));
  if (!engine)
    return engine.error();
  api = std::make_unique<Api>(
      std::move(served), **engine, reader,
      cacheBytesPerSequence(manifest, chunk) * static_cast<uint64_t>(*sequences),
      Api::Options{.keys = *std::move(keys),
                   .requestTimeout = std::chrono::seconds(arguments.requestTimeout)});
  (*server)->onSignal([&](int count) {
    if (count > 1)
      return (*server)->stop();
    reportNote("shutting down: requests in progress have " +
               std::to_string(arguments.drainSeconds) + " s to finish");
    api->drain();
    (*server)->stopAccepting();
    stopWhenIdle(**server, *api,
                 std::chrono::steady_clock::now() + std::chrono::seconds(arguments.drainSeconds));
  });
  reportNote("serving " + manifest.name + " at " + (*server)->address() + " (" +
             std::to_string(*sequences) + " sequences of " + std::to_string(manifest.maxSeq) +
             " positions)");
  (*server)->run();
  return {};
}

} // namespace mica::rt
