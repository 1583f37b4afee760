// Bodies of requests to both endpoints of the server, with and without tools.
#include "backends/runtime/serve/ParseRequest.h"
#include "backends/runtime/text/ChatTemplate.h"
#include "tests/unit/Paths.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

using namespace mica::rt;
using namespace mica::rt::serve;

static std::string readAll(const char *path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

namespace {
/// A model with a byte tokenizer and a template that supports tools.
struct Model {
  Model() {
    manifest.maxSeq = 1024;
    manifest.chat = {.chatTemplate = readAll(MICA_SOURCE_DIR "/tests/jinja/templates/qwen2.jinja"),
                     .specialTokens = {},
                     .toolTemplate = {}};
    const std::string table =
        readAll(MICA_SOURCE_DIR "/tests/fuzz/corpus/tokenizer-table/byte-level");
    auto bytes = std::as_bytes(std::span(table));
    auto read = Tokenizer::load(bytes);
    auto loaded = ProgramTokenizer::fromTable({bytes.begin(), bytes.end()}, manifest);
    if (!read || !loaded)
      std::abort();
    manifest.vocab = read->size();
    tokenizer = *std::move(loaded);
    auto opened = ChatTemplate::load(manifest, tokenizer.get(), {});
    if (!opened)
      std::abort();
    chat.emplace(*std::move(opened));
    served.emplace(ServedModel{
        .name = "model", .manifest = manifest, .text = tokenizer.get(), .chatTemplate = &*chat});
    served->answers = chat->answerFormat();
    if (!served->answers.calls)
      std::abort();
  }
  Manifest manifest;
  std::unique_ptr<ProgramTokenizer> tokenizer;
  std::optional<ChatTemplate> chat;
  std::optional<ServedModel> served;
};
} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Model model;
  std::string_view body(reinterpret_cast<const char *>(data), size);
  for (Endpoint endpoint : {Endpoint::ChatCompletions, Endpoint::Completions}) {
    auto parsed = parseCompletionRequest(endpoint, body, *model.served);
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
      if (!checkPrompt(model.manifest, prompt))
        __builtin_trap();
  }
  return 0;
}
