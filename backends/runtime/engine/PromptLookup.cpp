#include "backends/runtime/engine/PromptLookup.h"

#include <algorithm>
#include <cmath>

namespace mica::rt {

namespace {
constexpr int64_t maxMatch = 32;
/// The maximum number of positions to search, which bounds the time for very frequent tokens.
constexpr int maxCandidates = 256;
/// The minimum match length of each record.
constexpr std::array<int64_t, 8> minLength{1, 2, 3, 4, 6, 9, 14, 32};
/// The initial number of accepted tokens of each record: more for longer matches, and for an
/// aligned text more after a common token than after differing ones.
constexpr std::array<double, 10> priorRight{0.7, 1, 2, 3, 4, 5, 6, 8, 0.6, 2};
constexpr double priorWrong = 1;
/// How far after a difference the aligned text is searched for a common token.
constexpr int64_t maxAdjacentDistance = 4;
/// The number of differing tokens after which the alignment is given up.
constexpr int64_t maxDiffering = 12;
/// The minimum length of a match that aligns the text with an earlier occurrence.
constexpr int64_t minAdjacentLength = 2;
/// The decay of a record per draft from it, and per token of text.
constexpr double keptByDraft = 0.95, keptByToken = 0.998;
} // namespace

PromptLookup::PromptLookup(double minAcceptance) : minAcceptance(minAcceptance) {}

double PromptLookup::defaultMinAcceptance(uint64_t weightBytes) {
  constexpr uint64_t cached = uint64_t(256) << 20;
  return weightBytes > cached ? 0.07 : 0.2;
}

void PromptLookup::observe(int32_t token) {
  auto place = static_cast<int32_t>(text.size());
  auto [known, isNew] = newest.try_emplace(token, place);
  before.push_back(isNew ? -1 : known->second);
  known->second = place;
  followAdjacent(token);
  text.push_back(token);
}

/// The first equal token of the aligned text is used, because a skipped one may occur again soon.
void PromptLookup::followAdjacent(int32_t token) {
  if (aligned < 0)
    return;
  int64_t end = std::min<int64_t>(aligned + differing + maxAdjacentDistance,
                                  static_cast<int64_t>(text.size()));
  for (int64_t place = aligned; place < end; ++place)
    if (text[place] == token) {
      aligned = place + 1;
      differing = 0;
      return;
    }
  if (++differing > maxDiffering) {
    aligned = -1;
    differing = 0;
  }
}

/// The longest match of the end of the text; the most recent one if there are several.
PromptLookup::Match PromptLookup::longestMatch() const {
  Match best;
  auto end = static_cast<int64_t>(text.size()) - 1;
  int places = 0;
  for (int64_t place = before[end]; place >= 0 && places < maxCandidates; place = before[place]) {
    int64_t length = 1;
    while (length < maxMatch && length <= place && text[place - length] == text[end - length])
      ++length;
    if (length > best.length)
      best = {place, length};
    if (length == maxMatch)
      break;
    ++places;
  }
  return best;
}

size_t PromptLookup::recordOf(int64_t matchLength) {
  size_t record = 0;
  while (record + 1 < matchRecords && matchLength >= minLength[record + 1])
    ++record;
  return record;
}

double PromptLookup::likelihood(size_t which) const {
  const Record &record = records[which];
  double kept = std::pow(keptByToken, static_cast<double>(text.size()) - double(record.when));
  return (record.right * kept + priorRight[which]) /
         ((record.right + record.wrong) * kept + priorRight[which] + priorWrong);
}

PromptLookup::Tokens PromptLookup::draft(int64_t maxTokens) {
  Tokens drafted;
  Match match = text.empty() ? Match() : longestMatch();
  int64_t from = -1;
  double each = 0;
  if (match.length > 0) {
    used = recordOf(match.length);
    from = match.last + 1;
    each = likelihood(used);
  }
  auto size = static_cast<int64_t>(text.size());
  size_t other = differing == 0 ? adjacentRecord : differingRecord;
  if (aligned >= 0 && aligned + differing < size && likelihood(other) > each) {
    used = other;
    from = aligned + differing;
    each = likelihood(used);
  } else if (match.length >= minAdjacentLength || aligned < 0) {
    aligned = from;
    differing = 0;
  }
  double all = each;
  for (int64_t i = 0; i < maxTokens && all >= minAcceptance; ++i) {
    // A match that reaches up to the end continues with the draft itself: a period repeats.
    int64_t source = from + i;
    drafted.push_back(source < size ? text[source] : drafted[source - size]);
    all *= each;
  }
  return drafted;
}

void PromptLookup::learn(int64_t drafted, int64_t accepted) {
  if (drafted == 0)
    return;
  Record &record = records[used];
  auto now = static_cast<int64_t>(text.size());
  double kept = keptByDraft * std::pow(keptByToken, static_cast<double>(now - record.when));
  record.right = record.right * kept + static_cast<double>(accepted);
  record.wrong = record.wrong * kept + (accepted < drafted ? 1 : 0);
  record.when = now;
}

} // namespace mica::rt
