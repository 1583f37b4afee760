// Encodes one pre-tokenized word: one algorithm per kind of vocabulary.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_MODEL_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_MODEL_H

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace mica::rt::tokenizer {

struct Table;

class Model {
public:
  virtual ~Model() = default;
  /// Appends the ids of `word`: well-formed UTF-8, not empty. O(n log n) in its length.
  virtual void encode(std::string_view word, std::vector<int32_t> &ids) const = 0;
};

/// The model of `table`, which must outlive the result.
std::unique_ptr<Model> makeModel(const Table &table);

std::unique_ptr<Model> makeBpeModel(const Table &table);
std::unique_ptr<Model> makeSentencePieceBpe(const Table &table);
std::unique_ptr<Model> makeUnigramModel(const Table &table);

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_MODEL_H
