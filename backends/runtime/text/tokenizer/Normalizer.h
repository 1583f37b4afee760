// What happens to text before it is split: the steps that a tokenizer file lists.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_NORMALIZER_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_NORMALIZER_H

#include "backends/runtime/support/Result.h"
#include "backends/runtime/text/base/ByteRanges.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt::tokenizer {

struct Table;
class NormalizerStage;

class Normalizer {
public:
  /// `table` must outlive the normalizer.
  explicit Normalizer(const Table &table);
  ~Normalizer();

  /// What happened to the places of a text's characters.
  struct Trace {
    bool moved = false;   ///< what is now the first character comes from one that was not
    size_t failedAt = 0;  ///< where in the text an error is, or before it
    ByteRanges untrusted; ///< of the text before, and then of the text after
  };

  bool identity() const { return stages.empty(); }
  /// Well-formed text in, well-formed text out; an error where a pattern exceeds its limits, or the
  /// text grows beyond measure.
  Result<std::string> apply(std::string_view text) const {
    Trace trace;
    return apply(text, trace);
  }
  Result<std::string> apply(std::string_view text, Trace &trace) const;

private:
  std::vector<std::unique_ptr<NormalizerStage>> stages;
};

/// One step.
class NormalizerStage {
public:
  virtual ~NormalizerStage() = default;
  virtual Result<std::string> apply(std::string text, Normalizer::Trace &trace) const = 0;
};

/// Carries the untrusted ranges of a step's text over to what the step makes of it.
class RangesCarrier {
public:
  explicit RangesCarrier(Normalizer::Trace &trace) : ranges(trace.untrusted) {}
  ~RangesCarrier() { ranges = std::move(carried); }
  RangesCarrier(const RangesCarrier &) = delete;
  RangesCarrier &operator=(const RangesCarrier &) = delete;

  /// Bytes [begin, end) are from `out` on as they are.
  void copied(size_t begin, size_t end, size_t out) {
    if (!ranges.empty())
      carried.add(ranges, begin, end, out);
  }
  /// Bytes [begin, end) have become [outBegin, outEnd).
  void changed(size_t begin, size_t end, size_t outBegin, size_t outEnd) {
    if (!ranges.empty() && ranges.overlaps(begin, end))
      carried.add(outBegin, outEnd);
  }
  /// Text that was not UTF-8 and is again: where its bytes come from is not known any more.
  std::string repaired(const std::string &broken);

private:
  ByteRanges &ranges;
  ByteRanges carried;
};

/// Whether what begins the text has moved when `to` replaces `from` there: the tokenizers package
/// counts a replacement as coming from the last character that it replaces.
bool replacedMovesStart(std::string_view from, std::string_view to);

struct NormalizerStep;
std::unique_ptr<NormalizerStage> makeCharacterMap(const NormalizerStep &step);
std::unique_ptr<NormalizerStage> makeStrip(const NormalizerStep &step);
std::unique_ptr<NormalizerStage> makeReplacePattern(const NormalizerStep &step);
std::unique_ptr<NormalizerStage> makeCharsMap(const NormalizerStep &step);
std::unique_ptr<NormalizerStage> makeUnicodeForm(const NormalizerStep &step);
std::unique_ptr<NormalizerStage> makeSentencePieceRules(const NormalizerStep &step,
                                                        const Table &table);

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_NORMALIZER_H
