#include "backends/runtime/text/tokenizer/PreTokenizer.h"
#include "backends/runtime/text/base/Utf8.h"

#include <algorithm>
#include <string>

namespace mica::rt::tokenizer {

Result<PreTokenizer> PreTokenizer::create(const Table &table) {
  PreTokenizer out;
  for (const PreTokenizerStep &rule : table.preTokenizer) {
    out.steps.push_back({rule, out.patterns.size()});
    if (rule.kind != PreTokenizerKind::Split)
      continue;
    Result<Regex> pattern = Regex::compile(rule.text);
    if (!pattern)
      return Error{"the tokenizer table is broken: " + pattern.error().message +
                   "; compile the model again"};
    out.patterns.push_back(std::move(*pattern));
  }
  return out;
}

PreTokenizer::Scratch PreTokenizer::makeScratch() const {
  Scratch scratch;
  for (const Regex &pattern : patterns)
    scratch.emplace_back(pattern);
  return scratch;
}

const Regex::Searcher *PreTokenizer::failure(const Scratch &scratch) {
  for (const Regex::Searcher &searcher : scratch)
    if (!searcher.failure())
      return &searcher;
  return nullptr;
}

bool PreTokenizer::apply(size_t step, std::string_view text, bool atStart, Scratch &scratch,
                         Sink &sink) const {
  if (text.empty())
    return true;
  if (step == steps.size())
    return sink.word(text);
  switch (steps[step].rule.kind) {
  case PreTokenizerKind::Split:
    return applySplit(step, text, atStart, scratch, sink);
  case PreTokenizerKind::PrefixSpace:
    if (text[0] == ' ')
      return apply(step + 1, text, atStart, scratch, sink);
    return apply(step + 1, ' ' + std::string(text), atStart, scratch, sink);
  case PreTokenizerKind::Metaspace:
    return applyMetaspace(step, text, atStart, scratch, sink);
  }
  return true;
}

bool PreTokenizer::applySplit(size_t step, std::string_view text, bool atStart, Scratch &scratch,
                              Sink &sink) const {
  const PreTokenizerStep &rule = steps[step].rule;
  bool stream = rule.behavior == SplitBehavior::Isolated || rule.behavior == SplitBehavior::Removed;
  std::vector<Piece> pieces; // for the behaviors that look at neighbors
  auto hand = [&](size_t begin, size_t end) {
    return apply(step + 1, text.substr(begin, end - begin), atStart && begin == 0, scratch, sink);
  };
  auto meet = [&](size_t begin, size_t end, bool match) {
    match ^= rule.invert;
    if (stream)
      return (match && rule.behavior == SplitBehavior::Removed) || hand(begin, end);
    pieces.push_back({begin, end, match});
    return true;
  };
  size_t done = 0, from = 0;
  Regex::Match match{0, 0};
  bool any = false;
  Regex::Searcher &searcher = scratch[steps[step].searcher];
  while (from <= text.size() && searcher.find(text, from, match)) {
    // An empty match right after a match is ignored, so that the search advances.
    if (match.begin == match.end && any && match.end == done) {
      from = done + (done < text.size() ? charLength(text[done]) : 1);
      continue;
    }
    if (done != match.begin && !meet(done, match.begin, false))
      return false;
    if (!meet(match.begin, match.end, true))
      return false;
    done = from = match.end;
    any = true;
  }
  if (done != text.size() && !meet(done, text.size(), false))
    return false;
  return std::ranges::all_of(merge(pieces, rule.behavior),
                             [&](const Piece &piece) { return hand(piece.begin, piece.end); });
}

std::vector<PreTokenizer::Piece> PreTokenizer::merge(const std::vector<Piece> &pieces,
                                                     SplitBehavior behavior) {
  std::vector<Piece> out;
  bool previous = false; // whether the piece before was a match
  auto extend = [&](const Piece &piece, bool join) {
    if (join && !out.empty()) {
      out.back().begin = std::min(out.back().begin, piece.begin);
      out.back().end = std::max(out.back().end, piece.end);
    } else {
      out.push_back(piece);
    }
    previous = piece.match;
  };
  if (behavior == SplitBehavior::MergedWithNext) {
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece)
      extend(*piece, piece->match && !previous);
    std::reverse(out.begin(), out.end());
    return out;
  }
  for (const Piece &piece : pieces) {
    bool contiguous = behavior == SplitBehavior::Contiguous;
    extend(piece, contiguous ? piece.match == previous : piece.match && !previous);
  }
  return out;
}

bool PreTokenizer::applyMetaspace(size_t step, std::string_view text, bool atStart,
                                  Scratch &scratch, Sink &sink) const {
  const PreTokenizerStep &rule = steps[step].rule;
  std::string replaced;
  for (char byte : text) {
    if (byte == ' ')
      replaced += rule.text;
    else
      replaced += byte;
  }
  bool prepend =
      rule.scheme == PrependScheme::Always || (rule.scheme == PrependScheme::First && atStart);
  if (prepend && !replaced.starts_with(rule.text))
    replaced.insert(0, rule.text);
  if (!rule.split)
    return apply(step + 1, replaced, atStart, scratch, sink);
  // Every replacement character begins a word.
  std::string_view rest = replaced;
  for (bool first = atStart; !rest.empty(); first = false) {
    size_t next = std::min(rest.find(rule.text, rest.starts_with(rule.text) ? rule.text.size() : 0),
                           rest.size());
    if (!apply(step + 1, rest.substr(0, next), first, scratch, sink))
      return false;
    rest.remove_prefix(next);
  }
  return true;
}

} // namespace mica::rt::tokenizer
