#include "backends/runtime/text/AnswerFormat.h"
#include "backends/runtime/text/AnswerReader.h"
#include "backends/runtime/text/DetectAnswerFormat.h"
#include "backends/runtime/text/jinja/Template.h"
#include "tests/unit/Paths.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

using namespace mica::rt;
using Json = nlohmann::ordered_json;

namespace {

/// The format of a template of tests/jinja.
AnswerFormat formatOf(const std::string &name) {
  std::ifstream file(MICA_SOURCE_DIR "/tests/jinja/templates/" + name + ".jinja");
  std::stringstream source;
  source << file.rdbuf();
  auto parsed = jinja::Template::parse(source.str());
  EXPECT_TRUE(parsed) << name;
  if (!parsed)
    return {};
  return detectAnswerFormat(
      source.str(),
      [&](const Json &messages, const Json &tools, bool answer) -> std::optional<std::string> {
        auto rendered = parsed->render({{"documents", nullptr},
                                        {"add_generation_prompt", answer},
                                        {"bos_token", "<s>"},
                                        {"eos_token", "</s>"}},
                                       {{"messages", messages}, {"tools", tools}});
        return rendered ? std::optional(rendered->bytes) : std::nullopt;
      });
}

/// Parts as texts: "content", "think: reasoning", "NAME(" and arguments.
std::vector<std::string> written(const std::vector<AnswerReader::Part> &parts) {
  std::vector<std::string> texts;
  for (const AnswerReader::Part &part : parts)
    texts.push_back(part.kind == AnswerReader::Part::Kind::Reasoning ? "think: " + part.text
                    : part.kind == AnswerReader::Part::Kind::Call    ? part.text + "("
                                                                     : part.text);
  return texts;
}

/// The parts of an answer that arrives in pieces of `size` bytes; consecutive parts of a kind are
/// joined, calls are "NAME(ARGUMENTS)".
std::vector<std::string> partsOf(const AnswerFormat &format, const std::string &answer, size_t size,
                                 bool startsInReasoning = false) {
  using Kind = AnswerReader::Part::Kind;
  AnswerReader reader(format, {"add", "now"}, startsInReasoning);
  std::vector<AnswerReader::Part> parts;
  auto take = [&](std::vector<AnswerReader::Part> more) {
    for (AnswerReader::Part &part : more) {
      EXPECT_FALSE(part.text.empty());
      if (part.kind == Kind::Arguments)
        EXPECT_TRUE(!parts.empty() &&
                    (parts.back().kind == Kind::Call || parts.back().kind == Kind::Arguments));
      if (!parts.empty() && part.kind != Kind::Call && parts.back().kind == part.kind)
        parts.back().text += part.text;
      else
        parts.push_back(std::move(part));
    }
  };
  for (size_t at = 0; at < answer.size(); at += size)
    take(reader.push(std::string_view(answer).substr(at, size)));
  take(reader.finish());
  std::vector<std::string> texts = written(parts);
  for (size_t i = parts.size(); i-- > 0;)
    if (parts[i].kind == Kind::Call) {
      texts[i] += texts[i + 1] + ")";
      texts.erase(texts.begin() + static_cast<int64_t>(i) + 1);
    }
  return texts;
}

using Parts = std::vector<std::string>;

void expectParts(const AnswerFormat &format, const std::string &answer, const Parts &expected,
                 bool startsInReasoning = false) {
  for (size_t size : {1, 2, 3, 5, 7, 1000})
    EXPECT_EQ(partsOf(format, answer, size, startsInReasoning), expected)
        << answer << " by " << size;
}

TEST(AnswerFormat, MatchesTheTemplate) {
  const std::vector<std::pair<const char *, const char *>> expected = {
      {"qwen2", "Hermes"},           {"qwen3", "Hermes"},        {"llama3", "Llama 3"},
      {"mistral", "Mistral"},        {"smollm-tools", "SmolLM"}, {"smollm", nullptr},
      {"chatml", nullptr},           {"gemma", nullptr},         {"command-r", nullptr},
      {"typescript-tools", nullptr}, {"phi3", nullptr}};
  for (auto [name, calls] : expected) {
    const ToolCallFormat *found = formatOf(name).calls;
    EXPECT_STREQ(found ? found->name : nullptr, calls) << name;
  }
  EXPECT_TRUE(formatOf("qwen3").reasoning);
  EXPECT_TRUE(formatOf("minimind").reasoning);
  EXPECT_FALSE(formatOf("qwen2").reasoning);
}

TEST(AnswerReader, HermesCalls) {
  AnswerFormat format = formatOf("qwen2");
  std::string call = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>";
  expectParts(format, call, {R"(add({"a": 1}))"});
  expectParts(format, "Let me see.\n" + call + "\n" + call + "\n",
              {"Let me see.", R"(add({"a": 1}))", R"(add({"a": 1}))"});
  expectParts(format, call + " and so on", {R"(add({"a": 1}))", "and so on"});
  // Markers within a string have no effect.
  expectParts(format,
              R"(<tool_call>{"name": "add", "arguments": {"a": "\"}</tool_call>"}}</tool_call>)",
              {R"(add({"a": "\"}</tool_call>"}))"});
  // A call ends with its JSON.
  expectParts(format, R"(<tool_call>{"name": "now", "arguments": {}})", {"now({})"});
}

TEST(AnswerReader, TextOutsideOfCallsIsContent) {
  AnswerFormat format = formatOf("qwen2");
  for (std::string text :
       {"<tool_call>\n{\"name\": \"add\", \"argum", "<tool_call>", "<tool_call> ",
        "a <tool_call> b", "<tool_call>{\"name\": \"other\", \"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": \"add\", \"arguments\": 1}</tool_call>",
        "<tool_call>{\"name\": \"add\"}</tool_call>", "<tool_call>{]}</tool_call>",
        "<tool_call>[]</tool_call>", "a <tool", " \n", "text \n", "a < b"})
    expectParts(format, text, {text});
  // Without tools, calls are not detected.
  AnswerReader reader(format, {}, false);
  std::string call = R"(<tool_call>{"name": "add", "arguments": {}}</tool_call>)";
  EXPECT_EQ(reader.push(call)[0].text, call);
}

TEST(AnswerReader, Llama3Calls) {
  AnswerFormat format = formatOf("llama3");
  std::string call = R"({"name": "add", "parameters": {"a": 1}})";
  expectParts(format, call, {R"(add({"a": 1}))"});
  expectParts(format, "\n" + call + "; " + call, {R"(add({"a": 1}))", R"(add({"a": 1}))"});
  expectParts(format, R"(<|python_tag|>{"type": "function", "name": "add", "parameters": {}})",
              {"add({})"});
  // An answer that is an object.
  for (std::string text : {R"({"name": "Ada", "parameters": {}})", R"({"a": [1, 2]} is JSON.)",
                           R"({"more": 1, "name": "add", "parameters": {}})", "{", "{}"})
    expectParts(format, text, {text});
  expectParts(format, "The call " + call, {"The call " + call});
}

/// The parts after each piece of an answer, and at its end.
std::vector<Parts> partsOfPieces(const AnswerFormat &format,
                                 const std::vector<std::string> &pieces) {
  AnswerReader reader(format, {"add", "now"}, /*startsInReasoning=*/false);
  std::vector<Parts> parts;
  parts.reserve(pieces.size() + 1);
  for (const std::string &piece : pieces)
    parts.push_back(written(reader.push(piece)));
  parts.push_back(written(reader.finish()));
  return parts;
}

TEST(AnswerReader, ACallComesInPieces) {
  for (auto [name, before, key, after] :
       {std::tuple("qwen2", "<tool_call>\n", "arguments", "\n</tool_call>"),
        std::tuple("llama3", "", "parameters", ""),
        std::tuple("llama3", "<|python_tag|>", "parameters", ""),
        std::tuple("mistral", "[TOOL_CALLS] [", "arguments", "]"),
        std::tuple("smollm-tools", "<tool_call>[", "arguments", "]</tool_call>")}) {
    std::string begin = std::string(before) + R"({"name": "add", ")";
    EXPECT_EQ(partsOfPieces(formatOf(name), {begin, key, "\": ", "{", R"("a": "x)", R"(y\"})",
                                             "\", ", R"("b": {}})", "}", after}),
              (std::vector<Parts>{{},
                                  {},
                                  {},
                                  {"add(", "{"},
                                  {R"("a": "x)"},
                                  {R"(y\"})"},
                                  {"\", "},
                                  {R"("b": {}})"},
                                  {},
                                  {},
                                  {}}))
        << name;
  }
}

TEST(AnswerReader, HandlesIncompleteCalls) {
  AnswerFormat format = formatOf("qwen2");
  std::string begin = R"(<tool_call>{"name": "add", "arguments": )";
  // Truncated within its arguments, or after them.
  EXPECT_EQ(partsOfPieces(format, {begin + R"({"a": "x)"}),
            (std::vector<Parts>{{"add(", R"({"a": "x)"}, {}}));
  EXPECT_EQ(partsOfPieces(format, {begin + "{}", R"(, "id": "}")"}),
            (std::vector<Parts>{{"add(", "{}"}, {}, {}}));
  // The end of its object is missing; that of its array.
  expectParts(format, begin + "{}</tool_call> and so on", {"add({})", "and so on"});
  expectParts(format, R"(<tool_call>[{"name": "add", "arguments": {}}</tool_call>text)",
              {"add({})", "text"});
  // Text after its arguments is skipped.
  expectParts(format, begin + R"({}, "more": {"a": "}"}}</tool_call>)", {"add({})"});
  // After a call, an object that is not a call.
  expectParts(format,
              R"(<tool_call>[{"name": "add", "arguments": {}}, {"name": "other"}]</tool_call>)",
              {"add({})", R"({"name": "other"}]</tool_call>)"});
  // In another order, or with escapes, it is returned as a whole.
  expectParts(format, R"(<tool_call>{"arguments": {"a": 1}, "name": "add"}</tool_call>)",
              {R"(add({"a":1}))"});
  expectParts(format, R"(<tool_call>{"name": "\u0061dd", "arguments": {}}</tool_call>)",
              {"add({})"});
}

TEST(AnswerReader, MistralCalls) {
  AnswerFormat format = formatOf("mistral");
  expectParts(format,
              R"([TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}, "id": "abcdefghi"}, )"
              R"({"name": "now", "arguments": {}}])",
              {R"(add({"a": 1}))", "now({})"});
  expectParts(format, "[TOOL_CALLS]add[ARGS]{}", {"[TOOL_CALLS]add[ARGS]{}"});
}

TEST(AnswerReader, SmolLmCalls) {
  AnswerFormat format = formatOf("smollm-tools");
  expectParts(
      format,
      R"(<tool_call>[{"name": "add", "arguments": {"a": 1}}, {"name": "now", "arguments": {}}]</tool_call>)",
      {R"(add({"a": 1}))", "now({})"});
  // Its templates write no calls.
  std::string written = format.calls->write({"add", R"({"a": 1})"});
  expectParts(format, written, {R"(add({"a": 1}))"});
}

TEST(AnswerReader, Reasoning) {
  AnswerFormat format = formatOf("qwen3");
  expectParts(format, "<think>\nOne.\n\nTwo. \n</think>\n\n42", {"think: One.\n\nTwo.", "42"});
  expectParts(format, "<think>\n\n</think>\n\n42", {"42"});
  expectParts(format, "One.</think>42 \n", {"think: One.", "42 \n"}, /*startsInReasoning=*/true);
  expectParts(format, "One", {"think: One"}, /*startsInReasoning=*/true);
  expectParts(format, "<think>One </thi", {"think: One </thi"});
  expectParts(format, "<thin", {"<thin"});
  // It begins an answer.
  expectParts(format, "The tag <think>", {"The tag <think>"});
  std::string call = R"(<tool_call>{"name": "now", "arguments": {}}</tool_call>)";
  expectParts(format, "<think>" + call + "</think>\n" + call, {"think: " + call, "now({})"});
  // A call without a marker may follow it.
  AnswerFormat both = {format.reasoning, formatOf("llama3").calls};
  expectParts(both, R"(<think>a</think> {"name": "now", "parameters": {}})",
              {"think: a", "now({})"});
  expectParts(both, "<think>a</think> b", {"think: a", "b"});
}
} // namespace
