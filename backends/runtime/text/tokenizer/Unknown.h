// Text that a vocabulary of sentencepiece does not cover.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_UNKNOWN_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_UNKNOWN_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace mica::rt::tokenizer {

struct Table;

/// Appends the ids of an unknown `text` by the rules of sentencepiece: the ids of its bytes, or
/// the unknown id unless the previous id is the unknown id (`afterUnknown`, updated).
void encodeUnknown(const Table &table, std::string_view text, bool &afterUnknown,
                   std::vector<int32_t> &ids);

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_UNKNOWN_H
