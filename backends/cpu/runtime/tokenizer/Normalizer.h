// What happens to text before it is split: the steps that a tokenizer file lists.
#pragma once

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
  /// Well-formed text in, well-formed text out.
  std::string apply(std::string_view text) const;

private:
  std::vector<std::unique_ptr<NormalizerStage>> stages;
};

/// One step.
class NormalizerStage {
public:
  virtual ~NormalizerStage() = default;
  virtual std::string apply(std::string text) const = 0;
};

struct NormalizerStep;
std::unique_ptr<NormalizerStage> makeUnicodeForm(const NormalizerStep &step);
std::unique_ptr<NormalizerStage> makeSentencePieceRules(const NormalizerStep &step,
                                                        const Table &table);

} // namespace mica::rt::tokenizer
