#include "backends/runtime/text/jinja/TokenStream.h"
#include "backends/runtime/text/jinja/Failure.h"

#include <utility>

namespace mica::rt::jinja {

Token TokenStream::take() {
  Token token = current();
  if (at + 1 < tokens.size())
    ++at;
  return token;
}

bool TokenStream::skip(std::string_view operation) {
  bool found = current().is(operation);
  if (found)
    take();
  return found;
}

bool TokenStream::skipName(std::string_view name) {
  bool found = current().isName(name);
  if (found)
    take();
  return found;
}

void TokenStream::fail(std::string message) const {
  throw Failure{std::move(message), current().line};
}

void TokenStream::unexpected(std::string_view wanted) const {
  std::string found;
  switch (current().kind) {
  case Token::Name:
  case Token::Operator:
  case Token::Number:
    found = "'" + current().text + "'";
    break;
  case Token::String:
    found = "a string";
    break;
  case Token::End:
    found = "the end of the template";
    break;
  default:
    found = current().kind == Token::Data ? "text" : "the end of the tag";
  }
  fail(std::string(wanted) + " is expected, not " + found);
}

void TokenStream::expect(std::string_view operation) {
  if (!skip(operation))
    unexpected("'" + std::string(operation) + "'");
}

void TokenStream::expectName(std::string_view name) {
  if (!skipName(name))
    unexpected("'" + std::string(name) + "'");
}

void TokenStream::expect(Token::Kind kind) {
  if (current().kind != kind)
    unexpected(kind == Token::BlockEnd ? "%}" : "}}");
  take();
}

std::string TokenStream::takeName() {
  if (current().kind != Token::Name)
    unexpected("a name");
  return take().text;
}

} // namespace mica::rt::jinja
