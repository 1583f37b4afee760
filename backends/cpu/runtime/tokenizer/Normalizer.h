// What happens to text before it is split: the steps that a tokenizer file lists.
#pragma once

#include "backends/cpu/runtime/Result.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt::tokenizer {

struct Table;
class NormalizerStage;

class Normalizer {
public:
  /// `table` must outlive the normaliser.
  explicit Normalizer(const Table &table);
  ~Normalizer();

  bool identity() const { return stages.empty(); }
  /// Well-formed text in, well-formed text out; an error where a pattern exceeds its limits.
  Result<std::string> apply(std::string_view text) const {
    bool moved = false;
    return apply(text, moved);
  }
  /// `moved` becomes true where what is now the first character comes from one that was not.
  Result<std::string> apply(std::string_view text, bool &moved) const;

private:
  std::vector<std::unique_ptr<NormalizerStage>> stages;
};

/// One step.
class NormalizerStage {
public:
  virtual ~NormalizerStage() = default;
  virtual Result<std::string> apply(std::string text, bool &moved) const = 0;
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
