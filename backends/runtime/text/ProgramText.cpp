#include "backends/runtime/text/ProgramText.h"

namespace mica::rt {

Result<ProgramText> ProgramText::load(const program::ProgramFile &file, const Manifest &manifest,
                                      const std::optional<std::string> &templateFile) {
  Result<Manifest> changed = withChatTemplate(manifest, templateFile);
  if (!changed)
    return changed.error();
  Result<std::unique_ptr<ProgramTokenizer>> tokenizer = ProgramTokenizer::load(file, *changed);
  if (!tokenizer)
    return tokenizer.error();
  return ProgramText{*std::move(changed), *std::move(tokenizer)};
}

} // namespace mica::rt
