// Normalizes text before it is split, by the steps listed in the tokenizer file.
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

  /// Where the characters of a text have moved.
  struct Trace {
    bool moved = false;   ///< what is now the first character comes from one that was not
    size_t failedAt = 0;  ///< where in the text an error is, or before it
    ByteRanges untrusted; ///< of the text before, and then of the text after
  };

  bool identity() const { return stages.empty(); }
  /// Takes and returns well-formed text. Errors: a pattern exceeds its limits, or the text becomes
  /// too long.
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

/// Maps the untrusted ranges of a step's input to its output.
class RangesCarrier {
public:
  explicit RangesCarrier(Normalizer::Trace &trace) : ranges(trace.untrusted) {}
  ~RangesCarrier() { ranges = std::move(carried); }
  RangesCarrier(const RangesCarrier &) = delete;
  RangesCarrier &operator=(const RangesCarrier &) = delete;

  /// Bytes [begin, end) are copied to `out`.
  void copied(size_t begin, size_t end, size_t out) {
    if (!ranges.empty())
      carried.add(ranges, begin, end, out);
  }
  /// Bytes [begin, end) are replaced by [outBegin, outEnd).
  void changed(size_t begin, size_t end, size_t outBegin, size_t outEnd) {
    if (!ranges.empty() && ranges.overlaps(begin, end))
      carried.add(outBegin, outEnd);
  }
  /// For text that was repaired to be UTF-8: the origin of its bytes is unknown.
  std::string repaired(const std::string &broken);

private:
  ByteRanges &ranges;
  ByteRanges carried;
};

/// Whether the start of the text has moved when `to` replaces `from` there: in the tokenizers
/// package, a replacement has the position of the last character that it replaces.
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
