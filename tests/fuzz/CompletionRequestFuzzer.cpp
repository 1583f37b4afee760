// Bodies of requests to both endpoints of the server, with and without tools.
#include "backends/runtime/serve/ParseRequest.h"
#include "tests/unit/backends/runtime/serve/ByteModel.h"

#include <cstdint>
#include <string_view>

using namespace mica::rt;
using namespace mica::rt::serve;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const mica::test::ByteModel model(1024);
  std::string_view body(reinterpret_cast<const char *>(data), size);
  for (Endpoint endpoint : {Endpoint::ChatCompletions, Endpoint::Completions}) {
    auto parsed = parseCompletionRequest(endpoint, body, model.served());
    if (auto *error = std::get_if<ApiError>(&parsed)) {
      // Errors can be serialized, whatever bytes they quote.
      if (error->status < 400 ||
          error->toJson().dump(-1, ' ', false, Json::error_handler_t::replace).empty())
        __builtin_trap();
      continue;
    }
    const auto &request = std::get<CompletionRequest>(parsed);
    if (endpoint == Endpoint::Completions && !request.tools.empty())
      __builtin_trap();
    for (const Tokens &prompt : request.prompts)
      if (!checkPrompt(model.served().manifest, prompt))
        __builtin_trap();
  }
  return 0;
}
