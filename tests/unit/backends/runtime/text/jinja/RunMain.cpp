// mica-jinja-run: templates for scripts that compare with Jinja2. Reads lines of JSON
// {"template": TEXT, "context": {...}} and answers each with {"text": TEXT} or {"error": TEXT}.
#include "backends/runtime/text/jinja/Template.h"

#include <iostream>
#include <nlohmann/json.hpp>

using namespace mica::rt;

static Result<jinja::TrackedText> run(const nlohmann::ordered_json &task) {
  auto parsed = jinja::Template::parse(task["template"].get<std::string>());
  if (!parsed)
    return parsed.error();
  // A fixed time that the other side uses as well.
  return parsed->render(nlohmann::ordered_json::object(), task["context"],
                        [](const std::string &format) { return "<" + format + ">"; });
}

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    Result<jinja::TrackedText> text = run(nlohmann::ordered_json::parse(line));
    nlohmann::ordered_json answer = text ? nlohmann::ordered_json{{"text", text->bytes}}
                                         : nlohmann::ordered_json{{"error", text.error().message}};
    std::cout << answer.dump() << std::endl;
  }
}
