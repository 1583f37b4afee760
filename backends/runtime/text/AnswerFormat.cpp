#include "backends/runtime/text/AnswerFormat.h"

#include <nlohmann/json.hpp>

namespace mica::rt {

namespace {
constexpr ReasoningFormat reasonings[] = {
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
};

constexpr ToolCallFormat callFormats[] = {
    {.name = "Hermes", .begin = "<tool_call>", .end = "</tool_call>", .argumentsKey = "arguments"},
    {.name = "Llama 3",
     .begin = "<|python_tag|>",
     .end = "",
     .argumentsKey = "parameters",
     .bare = true},
    {.name = "Mistral", .begin = "[TOOL_CALLS]", .end = "", .argumentsKey = "arguments"},
    {.name = "SmolLM",
     .begin = "<tool_call>",
     .end = "</tool_call>",
     .argumentsKey = "arguments",
     .asContent = true},
};
} // namespace

std::span<const ReasoningFormat> reasoningFormats() { return reasonings; }

std::span<const ToolCallFormat> toolCallFormats() { return callFormats; }

std::string ToolCallFormat::write(const ToolCall &call) const {
  std::string text(begin);
  text += "\n{\"name\": " + nlohmann::ordered_json(call.name).dump() + ", \"" +
          std::string(argumentsKey) + "\": " + call.arguments + "}\n";
  return text + std::string(end);
}

} // namespace mica::rt
