// Suggestions for misspelled words.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_SPELLING_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_SPELLING_H

#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// The word of `known` that `word` is most likely a typo of;
/// empty if none is close. Ignores case, and the difference between - and _.
std::string closestWord(std::string_view word, const std::vector<std::string> &known);

/// "; did you mean 'WORD'?", or nothing for an empty word.
std::string didYouMean(std::string_view word);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_SPELLING_H
