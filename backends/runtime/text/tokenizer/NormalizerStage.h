// One step of a normalizer, and what the steps share.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_NORMALIZERSTAGE_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_NORMALIZERSTAGE_H

#include "backends/runtime/support/Result.h"
#include "backends/runtime/text/base/ByteRanges.h"

#include <string>
#include <string_view>

namespace mica::rt::tokenizer {

/// How a normalizer has moved the characters of a text.
struct NormalizerTrace {
  bool moved = false;   ///< the first character comes from one that was not the first
  size_t failedAt = 0;  ///< position of an error in the text, or one before it
  ByteRanges untrusted; ///< of the input, and afterwards of the output
};

/// One step.
class NormalizerStage {
public:
  virtual ~NormalizerStage() = default;
  virtual Result<std::string> apply(std::string text, NormalizerTrace &trace) const = 0;
};

/// Maps the untrusted ranges of a step's input to its output.
class RangesCarrier {
public:
  explicit RangesCarrier(NormalizerTrace &trace) : ranges(trace.untrusted) {}
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

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_NORMALIZERSTAGE_H
