#include "backends/runtime/support/Spelling.h"

#include <algorithm>

namespace mica::rt {

namespace {
/// A word in the form that is compared: lower case, without leading dashes and underscores.
std::string folded(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string out;
  for (char c : word)
    out += c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

/// The number of insertions, deletions, replacements and swaps of neighbors that turn `a` into `b`.
size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({replaced, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[a.size()][b.size()];
}
} // namespace

std::string closestWord(std::string_view word, const std::vector<std::string> &known) {
  std::string wanted = folded(word), closest;
  size_t min = (wanted.size() + 1) / 3 + 1;
  for (const std::string &candidate : known)
    if (size_t distance = editDistance(wanted, folded(candidate)); distance < min) {
      min = distance;
      closest = candidate;
    }
  if (!closest.empty() || wanted.size() < 3)
    return closest;
  auto begins = [&](const std::string &candidate) { return folded(candidate).starts_with(wanted); };
  auto found = std::find_if(known.begin(), known.end(), begins);
  return found == known.end() ? "" : *found;
}

std::string didYouMean(std::string_view word) {
  return word.empty() ? "" : "; did you mean '" + std::string(word) + "'?";
}

} // namespace mica::rt
