// Letter case and number classes, as in Python's strings.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_CASE_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_CASE_H

#include <string>
#include <string_view>

namespace mica::rt::jinja {

/// str.upper(), str.lower() and so on. A letter may become several; a sigma at the end of a word
/// has a separate lower-case form.
std::string toUpper(std::string_view text);
std::string toLower(std::string_view text);
std::string capitalized(std::string_view text);
std::string titled(std::string_view text);
std::string caseSwapped(std::string_view text);
std::string caseFolded(std::string_view text);

/// str.islower(), str.isupper(), str.istitle().
bool isLowerText(std::string_view text);
bool isUpperText(std::string_view text);
bool isTitleText(std::string_view text);

/// str.isdigit() and str.isnumeric() of one code point.
bool isDigit(std::string_view character);
bool isNumeric(std::string_view character);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_CASE_H
