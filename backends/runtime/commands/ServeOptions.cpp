#include "backends/runtime/commands/ServeOptions.h"
#include "backends/runtime/commands/GenerationOptions.h"
#include "backends/runtime/engine/GenerationSettings.h"
#include "backends/runtime/support/HelpFormatter.h"
#include "backends/runtime/support/OptionValues.h"

namespace mica::rt {

constexpr int64_t maxCount = setting_range::maxCount;
constexpr int64_t maxSequences = 1024;

static void addServeAddress(CLI::App &app, ServeArguments &serve) {
  serve::HttpOptions &http = serve.http;
  CLI::Option *unixSocket =
      app.add_option("--unix-socket", http.unixSocket, "Listen on this Unix socket instead of TCP")
          ->type_name("PATH");
  app.add_option(
         "--host", http.host,
         "IP address to listen on, or localhost for 127.0.0.1; 0.0.0.0: all IPv4 interfaces")
      ->type_name("ADDRESS")
      ->capture_default_str()
      ->excludes(unixSocket);
  app.add_option("--port", http.port, "TCP port to listen on; 0: any free port")
      ->capture_default_str()
      ->transform(wholeNumber(0, 65535))
      ->excludes(unixSocket);
  repeatable(app.add_option("--allowed-host", serve.allowedHosts,
                            "Accept requests to this host name, localhost and IP addresses only; "
                            "may repeat (default: localhost and IP addresses on a TCP port without "
                            "API keys, otherwise all)"))
      ->type_name("NAME");
}

static void addServeLimits(CLI::App &app, ServeArguments &serve) {
  app.add_option(
         "--sequences", serve.sequences,
         "Completions processed at once (default: as many as fit into --cache-bytes, at most 8)")
      ->transform(wholeNumber(1, maxSequences));
  app.add_option("--cache-bytes", serve.cacheBytes,
                 "Memory for the KV caches of all sequences (default: half of the memory available "
                 "besides the weights)")
      ->transform(wholeNumber(1));
  addCheckpointBytes(app, serve.checkpointBytes);
  app.add_option("--queue", serve.queue,
                 "Maximum number of waiting completions; a request with more gets status 429")
      ->capture_default_str()
      ->transform(wholeNumber(0, maxCount));
  app.add_option("--prefill-chunk", serve.prefillChunk,
                 "Maximum number of prompt tokens processed at once; while answers are streamed, "
                 "possibly fewer (default: 256)")
      ->transform(wholeNumber(1, maxCount));
  app.add_option("--max-body-bytes", serve.http.maxBodyBytes, "Maximum size of a request body")
      ->capture_default_str()
      ->transform(wholeNumber(1));
  app.add_option("--max-connections", serve.http.maxConnections,
                 "Maximum number of open connections")
      ->capture_default_str()
      ->transform(wholeNumber(1, 1 << 20));
  auto addSeconds = [&app](const char *name, int64_t &seconds, int64_t min, const char *help) {
    app.add_option(name, seconds, help)
        ->capture_default_str()
        ->transform(wholeNumber(min, maxCount));
  };
  addSeconds("--receive-timeout", serve.receiveTimeout, 1,
             "Seconds for a request's header to arrive, and for its body (status 408)");
  addSeconds("--send-timeout", serve.sendTimeout, 1,
             "Seconds without progress in sending until a client is disconnected");
  addSeconds("--idle-timeout", serve.idleTimeout, 1,
             "Seconds until a connection without a request is closed");
  addSeconds("--request-timeout", serve.requestTimeout, 0,
             "Time limit of a request in seconds, from the end of its body; 0: none");
  addSeconds("--sse-ping-interval", serve.ssePingInterval, 0,
             "Seconds after which a stream without an event gets a comment, so that proxies do not "
             "close it; 0: never");
  addSeconds("--drain-seconds", serve.drainSeconds, 0,
             "Seconds that running requests have to finish after SIGTERM or Ctrl-C");
}

CLI::App *addServe(CLI::App &app, ServeArguments &serve) {
  CLI::App *sub = app.add_subcommand(
      "serve",
      "Serve an OpenAI-compatible HTTP API: /v1/chat/completions, /v1/completions, /v1/models");
  addGroup(*sub, "Address", [&] { addServeAddress(*sub, serve); });
  addGroup(*sub, "Limits", [&] { addServeLimits(*sub, serve); });
  addGroup(*sub, "Drafts", [&] { addDrafts(*sub, serve.drafts); });
  CLI::Option *key =
      sub->add_option(
             "--api-key", serve.apiKey,
             "Require this API key; other users of the machine can see it in the process list")
          ->type_name("KEY");
  sub->add_option("--api-key-file", serve.apiKeyFile,
                  "Require one of the API keys in FILE, one per line")
      ->type_name("FILE")
      ->excludes(key);
  sub->add_flag("--log-prompts", serve.logPrompts,
                "Write the prompt of each request to stderr, as one line of JSON");
  sub->add_option("--chat-template,--chat-template-file", serve.templateFile,
                  "Chat template (Jinja) to use instead of the model's own")
      ->type_name("FILE");
  return sub;
}

} // namespace mica::rt
