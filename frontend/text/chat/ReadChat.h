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

/// A template for one kind of conversations.
struct NamedTemplate {
  std::string text;
  std::string file;     ///< its path
  std::string unusable; ///< Why it cannot be parsed, with its line; empty: it can.
};

/// What a program needs to put a conversation into words.
struct ChatDescription {
  std::string chatTemplate;
  std::string file; ///< the path of the template
  /// For conversations with tools ("tool_use"), where there is another for them.
  std::optional<NamedTemplate> forTools;
  /// The names of templates that no program uses.
  std::vector<std::string> leftOut;
  /// The variables `bos_token`, `eos_token`, ... of the template.
  std::vector<std::pair<std::string, std::string>> specialTokens;
  /// Why the template cannot be parsed, with its line; empty: it can.
  std::string unusable;
};

/// The folder of templates in a model's folder, one file each.
inline constexpr llvm::StringLiteral kNamedTemplates = "additional_chat_templates";

/// Reads a model folder or a GGUF file; nullopt where it has no template. Errors: files that are
/// not what they should be.
llvm::Expected<std::optional<ChatDescription>> readChat(llvm::StringRef model);

} // namespace mica

#endif // MICA_FRONTEND_TEXT_CHAT_READCHAT_H
