// How many bytes of a text a token can stand for.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TOKENBOUND_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TOKENBOUND_H

#include <cstddef>
#include <optional>

namespace mica::rt::tokenizer {

class Normalizer;
struct Table;

/// A bound of the bytes of a text that one id stands for: a text of n bytes has at least n / bound
/// ids. None if text may be dropped (white space that is stripped or removed, characters without an
/// id), if any number of characters may become one id, or for vocabularies other than BPE.
std::optional<size_t> maxBytesPerToken(const Table &table, const Normalizer &normalizer);

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_TOKENBOUND_H
