// Steps of the normalizer that map characters, strip both ends, and replace matches of a pattern.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_NORMALIZERSTAGES_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_NORMALIZERSTAGES_H

#include "backends/runtime/text/tokenizer/NormalizerStage.h"

#include <memory>

namespace mica::rt::tokenizer {

struct NormalizerStep;

std::unique_ptr<NormalizerStage> makeCharacterMap(const NormalizerStep &step);
std::unique_ptr<NormalizerStage> makeStrip(const NormalizerStep &step);
std::unique_ptr<NormalizerStage> makeReplacePattern(const NormalizerStep &step);

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_NORMALIZERSTAGES_H
