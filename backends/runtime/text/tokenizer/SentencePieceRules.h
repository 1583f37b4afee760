// Steps of the normalizer by SentencePiece's rules and tables.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_SENTENCEPIECERULES_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_SENTENCEPIECERULES_H

#include "backends/runtime/text/tokenizer/NormalizerStage.h"

#include <memory>

namespace mica::rt::tokenizer {

struct Table;
struct NormalizerStep;

std::unique_ptr<NormalizerStage> makeCharsMap(const NormalizerStep &step);
std::unique_ptr<NormalizerStage> makeSentencePieceRules(const NormalizerStep &step,
                                                        const Table &table);

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_SENTENCEPIECERULES_H
