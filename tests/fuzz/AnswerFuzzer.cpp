// Answers of models in all formats of tool calls: the result does not depend on how they are split
// into pieces.
#include "backends/runtime/text/AnswerFormat.h"
#include "backends/runtime/text/AnswerReader.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>

using namespace mica::rt;

/// The parts of an answer that arrives in pieces of sizes from `nextSize`, as one text.
template <typename NextSize>
static std::string partsOf(const AnswerFormat &format, std::string_view answer, NextSize nextSize) {
  using Kind = AnswerReader::Part::Kind;
  AnswerReader reader(format, {"add", "now"}, /*startsInReasoning=*/false);
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
  while (!answer.empty()) {
    size_t size = std::min<size_t>(nextSize(), answer.size());
    take(reader.push(answer.substr(0, size)));
    answer.remove_prefix(size);
  }
  take(reader.finish());
  return parts;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view answer(reinterpret_cast<const char *>(data), size);
  constexpr size_t maxPiece = 6;
  static constexpr ReasoningFormat reasoning = {"<think>", "</think>"};
  for (const ToolCallFormat &calls : toolCallFormats())
    for (const ReasoningFormat *thinks :
         {&reasoning, static_cast<const ReasoningFormat *>(nullptr)}) {
      AnswerFormat format{.reasoning = thinks, .calls = &calls};
      // One division into pieces, which depends on the answer: other inputs test others, in a third
      // of the time of single bytes.
      std::minstd_rand random(static_cast<uint32_t>(std::hash<std::string_view>()(answer)));
      std::string whole = partsOf(format, answer, [&] { return answer.size(); });
      if (partsOf(format, answer, [&] { return 1 + random() % maxPiece; }) != whole)
        std::abort();
    }
  return 0;
}
