// Chat templates: the parser and the interpreter.
#include "backends/runtime/text/jinja/Template.h"

#include <cstdint>
#include <nlohmann/json.hpp>

/// A conversation with everything that templates use.
static const nlohmann::ordered_json &conversation() {
  static const auto context = nlohmann::ordered_json::parse(R"({
    "messages": [{"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "Hi \u00fc"},
                 {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5, true]}}}]},
                 {"role": "user", "content": [{"type": "text", "text": "\u4f60\u597d"}]}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "x": 3, "s": "a b", "l": [3, 1, 2]})");
  return context;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace mica::rt::jinja;
  Limits limits;
  limits.steps = 20'000;
  limits.madeBytes = 1 << 20;
  limits.outputBytes = 1 << 16;
  auto parsed = Template::parse({reinterpret_cast<const char *>(data), size}, limits);
  if (!parsed)
    return 0;
  auto text = parsed->render(nlohmann::ordered_json::object(), conversation(),
                             [](const std::string &format) { return format; });
  if (text && text->size() > limits.outputBytes)
    __builtin_trap();
  // Ranges are within the text.
  if (text && text->tracked() && text->untrusted.next(text->size()) != ~size_t(0))
    __builtin_trap();
  return 0;
}
