// The cases of letters and the kinds of numbers, as Python's strings know them.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_CASE_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_CASE_H

#include <string>
#include <string_view>

namespace mica::rt::jinja {

/// str.upper(), str.lower() and so on. A letter may become several; a sigma at the end of a word
/// has a form of its own in lower case.
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

/// Of one code point: str.isdigit(), str.isnumeric().
bool isDigit(std::string_view character);
bool isNumeric(std::string_view character);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_CASE_H
