// A served model for tests of requests: without weights, with a byte tokenizer and a chat template
// that supports tools.
#ifndef MICA_TESTS_UNIT_BACKENDS_RUNTIME_SERVE_BYTEMODEL_H
#define MICA_TESTS_UNIT_BACKENDS_RUNTIME_SERVE_BYTEMODEL_H

#include "backends/runtime/serve/CompletionRequest.h"
#include "tests/unit/Paths.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace mica::test {

class ByteModel {
public:
  /// Aborts the process if one of its files cannot be used.
  explicit ByteModel(int64_t maxSeq) {
    manifest.maxSeq = maxSeq;
    manifest.chat = {.chatTemplate = readAll(MICA_SOURCE_DIR "/tests/jinja/templates/qwen2.jinja"),
                     .specialTokens = {},
                     .toolTemplate = {}};
    const std::string table =
        readAll(MICA_SOURCE_DIR "/tests/fuzz/corpus/tokenizer-table/byte-level");
    auto bytes = std::as_bytes(std::span(table));
    auto read = rt::Tokenizer::load(bytes);
    auto loaded = rt::ProgramTokenizer::fromTable({bytes.begin(), bytes.end()}, manifest);
    if (!read || !loaded)
      std::abort();
    manifest.vocab = read->size();
    tokenizer = *std::move(loaded);
    auto opened = rt::ChatTemplate::load(manifest, tokenizer.get(), {});
    if (!opened)
      std::abort();
    chat.emplace(*std::move(opened));
    model.emplace(rt::serve::ServedModel{.name = "model",
                                         .manifest = manifest,
                                         .text = tokenizer.get(),
                                         .chatTemplate = &*chat,
                                         .answers = chat->answerFormat()});
    if (!model->answers.calls)
      std::abort();
  }
  ByteModel(const ByteModel &) = delete;

  /// Refers to this object.
  const rt::serve::ServedModel &served() const { return *model; }

private:
  static std::string readAll(const char *path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  rt::Manifest manifest;
  std::unique_ptr<rt::ProgramTokenizer> tokenizer;
  std::optional<rt::ChatTemplate> chat;
  std::optional<rt::serve::ServedModel> model;
};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_RUNTIME_SERVE_BYTEMODEL_H
