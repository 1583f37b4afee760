// Splits text into words, which the model encodes one by one.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_PRETOKENIZER_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_PRETOKENIZER_H

#include "backends/runtime/support/Result.h"
#include "backends/runtime/text/base/Regex.h"
#include "backends/runtime/text/tokenizer/Table.h"

#include <string_view>
#include <vector>

namespace mica::rt::tokenizer {

class PreTokenizer {
public:
  /// Receives the words in order; a word is valid until the call returns.
  class Sink {
  public:
    /// Returns whether it takes more words.
    virtual bool word(std::string_view text) = 0;

  protected:
    ~Sink() = default;
  };

  /// Scratch memory of the split patterns; one per thread.
  using Scratch = std::vector<Regex::Searcher>;

  /// Null, or a failed search of `split`, after which words are undefined.
  static const Regex::Searcher *failure(const Scratch &scratch);

  static Result<PreTokenizer> create(const Table &table);
  Scratch makeScratch() const;

  /// Splits well-formed `text`, which must not be empty, until `sink` takes no more words.
  /// `atStart`: it is at the start of the input.
  void split(std::string_view text, bool atStart, Scratch &scratch, Sink &sink) const {
    apply(0, text, atStart, scratch, sink);
  }

private:
  struct Step {
    PreTokenizerStep rule;
    size_t searcher; // Split: index into the scratch
  };
  struct Piece {
    size_t begin, end;
    bool match;
  };

  /// Return whether `sink` takes more words.
  bool apply(size_t step, std::string_view text, bool atStart, Scratch &scratch, Sink &sink) const;
  bool applySplit(size_t step, std::string_view text, bool atStart, Scratch &scratch,
                  Sink &sink) const;
  bool applyMetaspace(size_t step, std::string_view text, bool atStart, Scratch &scratch,
                      Sink &sink) const;
  static std::vector<Piece> merge(const std::vector<Piece> &pieces, SplitBehavior behavior);

  std::vector<Step> steps;
  std::vector<Regex> patterns;
};

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_PRETOKENIZER_H
