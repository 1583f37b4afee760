// The program's chat template, which formats a conversation as the model's input.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_CHATTEMPLATE_H
#define MICA_BACKENDS_RUNTIME_TEXT_CHATTEMPLATE_H

#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/text/ProgramTokenizer.h"
#include "backends/runtime/text/jinja/Template.h"

namespace mica::rt {

struct Message {
  std::string role; ///< "system", "user", "assistant" or "tool"
  std::string content;
};

/// The manifest with the template in `file` instead of its own one, and instead of that for tools;
/// itself without a file. Text must be loaded with it as well, which knows what templates write.
/// Error: the file cannot be read.
Result<Manifest> withChatTemplate(const Manifest &manifest, const std::optional<std::string> &file);

class ChatTemplate {
public:
  struct Options {
    /// A file with tools, a JSON list of objects, which the template knows in all conversations.
    std::optional<std::string> tools;
    /// A special token that a conversation's text spells is one. Otherwise only what the template
    /// itself writes becomes special tokens, so that no text can end its turn.
    bool special = false;
  };
  /// Errors: the program has no template or no tokenizer, or the template cannot be run; the tools
  /// cannot be read or are not such a list, the template has no place for them, or the one for them
  /// cannot be run.
  static Result<ChatTemplate> load(const Manifest &manifest, const ProgramTokenizer *text,
                                   const Options &options);

  /// The conversation as ids; `answer`: followed by the beginning of an answer. Errors: the
  /// template refuses it.
  Result<Tokens> encode(const std::vector<Message> &messages, bool answer) const;
  /// The same of messages as JSON: a list of objects with a role each, as the template takes them,
  /// followed by the beginning of an answer. Errors: also that they are not such a list.
  Result<Tokens> encodeJson(const std::string &messages) const;
  /// Makes tools known to the template, a JSON list of objects, instead of those of a file. Errors:
  /// as of Options::tools, without the file; no such list.
  Status setTools(const std::string &list);
  /// Those of the file again, where there is one.
  void forgetTools() { tools = shared; }
  /// Whether conversations have tools now, and a template of their own with them.
  bool hasToolTemplate() const { return toolProgram && tools != "null"; }
  /// The special token that the template puts after an answer; empty: none. Errors: the template
  /// refuses a conversation with an answer.
  Result<Tokens> endOfTurn() const;

private:
  ChatTemplate(Manifest::Chat chat, const ProgramTokenizer &text, jinja::Template program,
               std::optional<Result<jinja::Template>> toolProgram)
      : chat(std::move(chat)), text(text), program(std::move(program)),
        toolProgram(std::move(toolProgram)) {}
  using Rendered = Result<jinja::TrackedText>;
  Rendered render(const std::vector<Message> &messages, bool answer) const;
  /// Of a JSON list.
  Rendered renderJson(const std::string &messages, bool answer) const {
    return renderBy(hasToolTemplate() ? **toolProgram : program, messages, tools, answer);
  }
  Rendered renderBy(const jinja::Template &used, const std::string &messages,
                    const std::string &tools, bool answer) const;
  Result<Tokens> idsOf(const Rendered &rendered) const;

  Status useTools(const std::string &path);

  Manifest::Chat chat;
  const ProgramTokenizer &text;
  jinja::Template program;
  /// Of conversations with tools, where there is one for them; it may be one that cannot be run.
  std::optional<Result<jinja::Template>> toolProgram;
  std::string shared = "null", tools = shared; ///< JSON: of all conversations, and of this one
  bool special = false;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_CHATTEMPLATE_H
