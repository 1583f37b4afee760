#include "backends/runtime/text/jinja/Template.h"
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/jinja/Interpreter.h"
#include "backends/runtime/text/jinja/Lexer.h"
#include "backends/runtime/text/jinja/Parser.h"

#include <ctime>
#include <nlohmann/json.hpp>

namespace mica::rt::jinja {

struct Template::Tree {
  Block block;
  Limits limits;
};

Template::Template(std::unique_ptr<Tree> tree) : tree(std::move(tree)) {}
Template::Template(Template &&) noexcept = default;
Template &Template::operator=(Template &&) noexcept = default;
Template::~Template() = default;

static Error errorOf(const Failure &failure) {
  return Error{(failure.line > 0 ? "line " + std::to_string(failure.line) + ": " : "") +
               failure.message};
}

Result<Template> Template::parse(std::string_view source, const Limits &limits) {
  if (source.size() > limits.sourceBytes)
    return Error{"is larger than " + std::to_string(limits.sourceBytes) + " bytes"};
  if (!tokenizer::isUtf8(source))
    return Error{"is not UTF-8"};
  try {
    return Template(std::make_unique<Tree>(Tree{jinja::parse(source), limits}));
  } catch (const Failure &failure) {
    return errorOf(failure);
  }
}

Result<TrackedText> Template::render(const nlohmann::ordered_json &own,
                                     const nlohmann::ordered_json &conversation,
                                     const Clock &clock) const {
  try {
    return Interpreter({fromJson(own), fromConversation(conversation)}, tree->limits, clock)
        .render(tree->block);
  } catch (const Failure &failure) {
    return errorOf(failure);
  }
}

std::vector<std::string> literalsOf(std::string_view source) {
  std::vector<std::string> literals;
  try {
    for (Token &token : tokenize(source))
      if (token.kind == Token::Data || token.kind == Token::String)
        literals.push_back(std::move(token.text));
  } catch (const Failure &) {
    return {};
  }
  return literals;
}

std::string localTime(const std::string &format) {
  std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[1024];
  return {text, std::strftime(text, sizeof text, format.c_str(), &local)};
}

} // namespace mica::rt::jinja
