// The step of the normalizer that applies a Unicode normalization form.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_UNICODEFORM_H
#define MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_UNICODEFORM_H

#include "backends/runtime/text/tokenizer/NormalizerStage.h"

#include <memory>

namespace mica::rt::tokenizer {

struct NormalizerStep;

std::unique_ptr<NormalizerStage> makeUnicodeForm(const NormalizerStep &step);

} // namespace mica::rt::tokenizer

#endif // MICA_BACKENDS_RUNTIME_TEXT_TOKENIZER_UNICODEFORM_H
