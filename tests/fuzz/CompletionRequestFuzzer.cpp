// Bodies of requests to the server, of both endpoints.
#include "backends/runtime/serve/CompletionRequest.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace mica::rt;
  using namespace mica::rt::serve;
  static const Manifest manifest = [] {
    Manifest m;
    m.vocab = 512;
    m.maxSeq = 1024;
    return m;
  }();
  // Without a tokenizer, prompts are ids.
  const ServedModel model{
      .name = "model", .manifest = manifest, .text = nullptr, .chatTemplate = nullptr};
  std::string_view body(reinterpret_cast<const char *>(data), size);
  for (Endpoint endpoint : {Endpoint::ChatCompletions, Endpoint::Completions}) {
    auto parsed = parseCompletionRequest(endpoint, body, model);
    if (auto *error = std::get_if<ApiError>(&parsed)) {
      // Errors can be written, whatever bytes they quote.
      if (error->status < 400 ||
          error->toJson().dump(-1, ' ', false, Json::error_handler_t::replace).empty())
        __builtin_trap();
      continue;
    }
    for (const Tokens &prompt : std::get<CompletionRequest>(parsed).prompts)
      if (!checkPrompt(manifest, prompt))
        __builtin_trap();
  }
  return 0;
}
