// Tokenizer and chat template of a program, for its commands.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_PROGRAMTEXT_H
#define MICA_BACKENDS_RUNTIME_TEXT_PROGRAMTEXT_H

#include "backends/runtime/text/ChatTemplate.h"

namespace mica::rt {

struct ProgramText {
  Manifest manifest;                           ///< with the chat template in use
  std::unique_ptr<ProgramTokenizer> tokenizer; ///< null if the program has none

  /// Loads both; `templateFile`, if given, replaces the program's chat template. Errors: as for
  /// withChatTemplate and ProgramTokenizer::load.
  static Result<ProgramText> load(const program::ProgramFile &file, const Manifest &manifest,
                                  const std::optional<std::string> &templateFile);
  /// See ChatTemplate::load. It refers to the tokenizer.
  Result<ChatTemplate> chatTemplate(const ChatTemplate::Options &options) const {
    return ChatTemplate::load(manifest, tokenizer.get(), options);
  }
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_PROGRAMTEXT_H
