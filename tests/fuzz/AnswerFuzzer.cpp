// Answers of models in all formats of tool calls: the result does not depend on how they are split
// into pieces.
#include "backends/runtime/text/AnswerFormat.h"
#include "backends/runtime/text/AnswerReader.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

using namespace mica::rt;

/// The parts of an answer that arrives in pieces of `size` bytes, as one text.
static std::string partsOf(const AnswerFormat &format, std::string_view answer, size_t size) {
  using Kind = AnswerReader::Part::Kind;
  AnswerReader reader(format, {"add", "now"}, /*reasons=*/false);
  std::string parts;
  std::optional<Kind> last;
  auto take = [&](const std::vector<AnswerReader::Part> &more) {
    for (const AnswerReader::Part &part : more) {
      bool follows = last == Kind::Call || last == Kind::Arguments;
      if (part.text.empty() || (part.kind == Kind::Arguments && !follows))
        std::abort();
      if (part.kind == Kind::Call || last != part.kind)
        parts += "\n" + std::to_string(static_cast<int>(part.kind)) + " ";
      parts += part.text;
      last = part.kind;
    }
  };
  for (; !answer.empty(); answer.remove_prefix(std::min(size, answer.size())))
    take(reader.push(answer.substr(0, size)));
  take(reader.finish());
  return parts;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view answer(reinterpret_cast<const char *>(data), size);
  static constexpr ReasoningFormat reasoning = {"<think>", "</think>"};
  for (const ToolCallFormat &calls : toolCallFormats())
    for (const ReasoningFormat *thinks :
         {&reasoning, static_cast<const ReasoningFormat *>(nullptr)}) {
      AnswerFormat format{.reasoning = thinks, .calls = &calls};
      std::string whole = partsOf(format, answer, answer.size() + 1);
      if (partsOf(format, answer, 1) != whole || partsOf(format, answer, 3) != whole)
        std::abort();
    }
  return 0;
}
