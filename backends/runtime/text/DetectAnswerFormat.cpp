#include "backends/runtime/text/DetectAnswerFormat.h"
#include "backends/runtime/support/NestedJson.h"
#include "backends/runtime/text/AnswerReader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace mica::rt {

using Json = nlohmann::ordered_json;

namespace {
const ToolCall probe = {"probe_function", R"({"probe_argument":"Probe"})"};

/// The answer that a template writes with the call `probe`.
std::optional<std::string> renderProbe(const RenderConversation &render) {
  Json question = {{"role", "user"}, {"content", "A question"}};
  Json tool = {{"type", "function"},
               {"function",
                {{"name", probe.name},
                 {"description", "A function"},
                 {"parameters",
                  {{"type", "object"},
                   {"properties", {{"probe_argument", {{"type", "string"}}}}},
                   {"required", {"probe_argument"}}}}}}};
  Json call = {{"id", "abcdefghi"},
               {"type", "function"},
               {"function", {{"name", probe.name}, {"arguments", Json::parse(probe.arguments)}}}};
  Json answer = {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}};
  Json tools = Json::array({tool});
  std::optional<std::string> before = render(Json::array({question}), tools, true);
  std::optional<std::string> with = render(Json::array({question, answer}), tools, false);
  if (!before || !with)
    return std::nullopt;
  auto [expected, answered] =
      std::mismatch(before->begin(), before->end(), with->begin(), with->end());
  // Markers may have a common prefix.
  if (expected != before->end())
    while (answered != with->begin() &&
           std::string_view(">] \n").find(answered[-1]) == std::string_view::npos)
      --answered;
  return std::string(answered, with->end());
}

bool isCallIn(const std::string &answer, const AnswerFormat &format) {
  AnswerReader reader(format, {probe.name}, /*startsInReasoning=*/false);
  std::vector<ToolCall> calls;
  for (AnswerReader::Part &part : reader.push(answer)) {
    if (part.kind == AnswerReader::Part::Kind::Call)
      calls.push_back({std::move(part.text), {}});
    if (part.kind == AnswerReader::Part::Kind::Arguments)
      calls.back().arguments += part.text;
  }
  const Json expected = Json::parse(probe.arguments);
  return std::any_of(calls.begin(), calls.end(), [&](const ToolCall &call) {
    std::string problem;
    return parseNested(call.arguments, problem) == expected;
  });
}
} // namespace

AnswerFormat detectAnswerFormat(std::string_view source, const RenderConversation &render) {
  AnswerFormat found;
  for (const ReasoningFormat &format : reasoningFormats())
    if (!found.reasoning && source.find(format.end) != source.npos)
      found.reasoning = &format;
  std::optional<std::string> answer = renderProbe(render);
  for (const ToolCallFormat &format : toolCallFormats()) {
    // The description that the template gives to the model, because it writes no call.
    bool told = source.find(format.begin) != source.npos &&
                source.find(format.argumentsKey) != source.npos &&
                source.find("<function=") == source.npos;
    bool written = answer && isCallIn(*answer, {found.reasoning, &format});
    bool omitted = !answer || answer->find(probe.name) == answer->npos;
    if (format.asContent ? told && omitted : written) {
      found.calls = &format;
      break;
    }
  }
  return found;
}

} // namespace mica::rt
