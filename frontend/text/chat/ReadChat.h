//===- ReadChat.h - a model's chat template ---------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_TEXT_CHAT_READCHAT_H
#define MICA_FRONTEND_TEXT_CHAT_READCHAT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica {

/// A chat template and its file.
struct NamedTemplate {
  std::string text;
  std::string file;     ///< its path
  std::string unusable; ///< Why it cannot be parsed, with its line; empty: it can.
};

/// What a program needs to render a conversation.
struct ChatDescription {
  std::string chatTemplate;
  std::string file; ///< the path of the template
  /// The template for conversations with tools ("tool_use"), if there is a separate one.
  std::optional<NamedTemplate> forTools;
  /// The names of unused templates.
  std::vector<std::string> leftOut;
  /// The template's variables `bos_token`, `eos_token`, ...
  std::vector<std::pair<std::string, std::string>> specialTokens;
  /// The error of parsing the template, with its line; empty: none.
  std::string unusable;
};

/// The subfolder of a model folder that contains templates, one per file.
inline constexpr llvm::StringLiteral kNamedTemplates = "additional_chat_templates";

/// Reads the chat templates of a model folder or a GGUF file; nullopt if there are none. Errors:
/// invalid files.
llvm::Expected<std::optional<ChatDescription>> readChat(llvm::StringRef model);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_CHAT_READCHAT_H
