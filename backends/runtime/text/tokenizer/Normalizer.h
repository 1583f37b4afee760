// Normalizes text before it is split, by the steps listed in the tokenizer file.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_NORMALIZER_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_NORMALIZER_H

#include "backends/runtime/text/tokenizer/NormalizerStage.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt::tokenizer {

struct Table;

class Normalizer {
public:
  /// `table` must outlive the normalizer.
  explicit Normalizer(const Table &table);
  ~Normalizer();

  using Trace = NormalizerTrace;

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

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_NORMALIZER_H
