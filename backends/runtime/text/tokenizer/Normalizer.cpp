#include "backends/runtime/text/tokenizer/Normalizer.h"
#include "backends/runtime/text/tokenizer/NormalizerStages.h"
#include "backends/runtime/text/tokenizer/SentencePieceRules.h"
#include "backends/runtime/text/tokenizer/Table.h"
#include "backends/runtime/text/tokenizer/UnicodeForm.h"

namespace mica::rt::tokenizer {
namespace {

class PrependStage final : public NormalizerStage {
public:
  explicit PrependStage(std::string_view prefix) : prefix(prefix) {}
  Result<std::string> apply(std::string text, NormalizerTrace &trace) const override {
    if (text.empty())
      return text;
    RangesCarrier(trace).copied(0, text.size(), prefix.size());
    return text.insert(0, prefix);
  }

private:
  std::string_view prefix;
};

class ReplaceStage final : public NormalizerStage {
public:
  ReplaceStage(std::string_view from, std::string_view to) : from(from), to(to) {}
  Result<std::string> apply(std::string text, NormalizerTrace &trace) const override {
    size_t at = text.find(from);
    trace.moved |= at == 0 && replacedMovesStart(from, to);
    if (at == std::string::npos)
      return text;
    RangesCarrier carrier(trace);
    std::string out;
    size_t begin = 0;
    for (; at != std::string::npos; at = text.find(from, begin)) {
      carrier.copied(begin, at, out.size());
      out.append(text, begin, at - begin);
      begin = at + from.size();
      carrier.changed(at, begin, out.size(), out.size() + to.size());
      out += to;
    }
    carrier.copied(begin, text.size(), out.size());
    return out.append(text, begin);
  }

private:
  std::string_view from, to;
};

std::unique_ptr<NormalizerStage> makeStage(const NormalizerStep &step, const Table &table) {
  switch (step.kind) {
  case NormalizerKind::Prepend:
    return std::make_unique<PrependStage>(step.text);
  case NormalizerKind::Replace:
    return std::make_unique<ReplaceStage>(step.text, step.replacement);
  case NormalizerKind::CharacterMap:
    return makeCharacterMap(step);
  case NormalizerKind::Strip:
    return makeStrip(step);
  case NormalizerKind::ReplacePattern:
    return makeReplacePattern(step);
  case NormalizerKind::UnicodeForm:
    return makeUnicodeForm(step);
  case NormalizerKind::SentencePiece:
    return makeSentencePieceRules(step, table);
  case NormalizerKind::CharsMap:
    return makeCharsMap(step);
  }
  return nullptr;
}

} // namespace

Normalizer::Normalizer(const Table &table) {
  for (const NormalizerStep &step : table.normalizer)
    stages.push_back(makeStage(step, table));
}

Normalizer::~Normalizer() = default;

Result<std::string> Normalizer::apply(std::string_view text, Trace &trace) const {
  std::string out(text);
  for (const auto &stage : stages) {
    Result<std::string> next = stage->apply(std::move(out), trace);
    if (!next) {
      trace.failedAt = stage == stages.front() ? trace.failedAt : 0; // else of another text
      return next;
    }
    out = *std::move(next);
    if (out.size() > kMaxGrowth * text.size())
      return Error{"the tokenizer's normalizers write more than 64 times as much"};
  }
  return out;
}

} // namespace mica::rt::tokenizer
