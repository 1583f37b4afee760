// The texts of values: str(), repr() and JSON.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_PRINT_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_PRINT_H

#include "backends/runtime/text/jinja/Value.h"

namespace mica::rt::jinja {

/// str(value). Errors: a value whose text is not supported, such as a generator.
Text toText(Budget &budget, const Value &value);
/// The text of a value with HTML's special characters as entities; markup is unchanged.
Value escape(Budget &budget, const Value &value);
/// repr(value).
TrackedText toRepr(Budget &budget, const Value &value);
/// repr of a float.
std::string toRepr(double value);

struct JsonStyle {
  bool ascii = false;
  std::optional<TrackedText> indent;
  TrackedText itemSeparator = {", ", {}}, keySeparator = {": ", {}};
  bool sortKeys = false;
};
/// json.dumps(value). Errors: values that JSON cannot represent.
TrackedText toJson(Budget &budget, const Value &value, const JsonStyle &style);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_PRINT_H
