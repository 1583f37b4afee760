// The program's chat template, which formats a conversation as the model's input.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_CHATTEMPLATE_H
#define MICA_BACKENDS_RUNTIME_TEXT_CHATTEMPLATE_H

#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/text/AnswerFormat.h"
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
  /// Errors: the program has no template or no tokenizer, or the template cannot be run or refuses
  /// a conversation with an answer; the tools cannot be read or are not such a list, the template
  /// has no place for them, or the one for them cannot be run.
  static Result<ChatTemplate> load(const Manifest &manifest, const ProgramTokenizer *text,
                                   const Options &options);
  /// The same template that knows other tools in all conversations, a JSON list of objects. Errors:
  /// as of Options::tools, without the file; no such list.
  Result<ChatTemplate> withTools(const std::string &list) const;

  /// The conversation as ids; `answer`: followed by the beginning of an answer. Errors: the
  /// template refuses it.
  Result<Tokens> encode(const std::vector<Message> &messages, bool answer) const;
  struct Prompt {
    Tokens tokens;
    std::string text; ///< Which they are.
  };
  /// The same of messages as JSON: a list of objects with a role each, as the template takes them,
  /// followed by the beginning of an answer. Errors: also that they are not such a list.
  Result<Prompt> encodeJson(const std::string &messages) const;
  /// The text alone.
  Result<std::string> renderJson(const std::string &messages) const;
  /// The special token that the template puts after an answer; empty: none.
  const Tokens &endOfTurn() const { return end; }
  /// What answers look like where the template knows tools, of its own or of a request.
  AnswerFormat answerFormat() const;

private:
  using Program = std::shared_ptr<const jinja::Template>;

  ChatTemplate(Manifest::Chat chat, const ProgramTokenizer &text, Program program)
      : chat(std::move(chat)), text(&text), program(std::move(program)) {}
  using Rendered = Result<jinja::TrackedText>;
  Rendered render(const std::vector<Message> &messages, bool answer) const;
  /// Of a JSON list.
  Rendered renderList(const std::string &messages, bool answer) const {
    return renderBy(hasToolTemplate() ? **toolProgram.value() : *program, messages, tools, answer);
  }
  Rendered renderBy(const jinja::Template &used, const std::string &messages,
                    const std::string &tools, bool answer) const;
  Result<Tokens> idsOf(const Rendered &rendered) const;
  /// Whether conversations have tools, and a template of their own with them.
  bool hasToolTemplate() const { return toolProgram && tools != "null"; }

  Status useTools(const std::string &path);
  Status setTools(const std::string &list);
  Status findEndOfTurn();

  Manifest::Chat chat;
  const ProgramTokenizer *text;
  Program program;
  /// Of conversations with tools, where there is one for them; it may be one that cannot be run.
  std::optional<Result<Program>> toolProgram;
  std::string tools = "null"; ///< JSON
  bool special = false;
  Tokens end;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_CHATTEMPLATE_H
