// Parses tokens to a tree: Jinja's grammar without inheritance and imports.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_PARSER_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_PARSER_H

#include "backends/runtime/text/jinja/Ast.h"

namespace mica::rt::jinja {

/// The maximum nesting of statements.
inline constexpr int maxBlockDepth = 60;

/// Errors include the line.
Block parse(std::string_view source);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_PARSER_H
