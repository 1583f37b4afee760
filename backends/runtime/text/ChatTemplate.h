// The program's chat template, which formats a conversation as the model's input.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_CHATTEMPLATE_H
#define MICA_BACKENDS_RUNTIME_TEXT_CHATTEMPLATE_H

#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/text/AnswerFormat.h"
#include "backends/runtime/text/ProgramTokenizer.h"
#include "backends/runtime/text/jinja/Template.h"

#include <nlohmann/json_fwd.hpp>

namespace mica::rt {

struct Message {
  std::string role; ///< "system", "user", "assistant" or "tool"
  std::string content;
};

/// The manifest with its templates replaced by the one in `file`, or unchanged without a file. The
/// tokenizer must be loaded with the result as well, because it depends on the template's literals.
/// Error: the file cannot be read.
Result<Manifest> withChatTemplate(const Manifest &manifest, const std::optional<std::string> &file);

class ChatTemplate {
public:
  struct Options {
    /// A file with tools, a JSON list of objects, which is passed to the template in every
    /// conversation.
    std::optional<std::string> tools;
    /// Parse special tokens in messages. Otherwise only the template itself can produce special
    /// tokens, so that a message cannot end its turn.
    bool special = false;
  };
  /// Errors: the program has no template or no tokenizer; the template cannot be run or rejects
  /// a conversation with an answer; the tools cannot be read or are not such a list; the template
  /// does not support tools, or the one for tools cannot be run.
  static Result<ChatTemplate> load(const Manifest &manifest, const ProgramTokenizer *text,
                                   const Options &options);
  /// The same template with other tools, a JSON list of objects. Errors: as for Options::tools.
  Result<ChatTemplate> withTools(nlohmann::ordered_json list) const;

  /// Tokenizes the conversation; `answer`: followed by the beginning of an answer. Errors: the
  /// template rejects it.
  Result<Tokens> encode(const std::vector<Message> &messages, bool answer) const;
  struct Prompt {
    Tokens tokens;
    std::string text; ///< The text of the tokens.
  };
  /// Like encode, for messages as JSON: a list of objects with a role each, as the template takes
  /// them, followed by the beginning of an answer. `maxTokens`: as `maxIds` of Tokenizer::encode.
  /// Errors: also if they are not such a list.
  Result<Prompt> encodeJson(const nlohmann::ordered_json &messages,
                            size_t maxTokens = SIZE_MAX) const;
  /// Only the text of encodeJson.
  Result<std::string> renderJson(const nlohmann::ordered_json &messages) const;
  /// The special tokens that the template writes after an answer; empty: none.
  const Tokens &endOfTurn() const { return end; }
  /// The format of answers if there are tools, in Options or in a request.
  AnswerFormat answerFormat() const;

private:
  using Program = std::shared_ptr<const jinja::Template>;

  ChatTemplate(Manifest::Chat chat, const ProgramTokenizer &text, Program program)
      : chat(std::move(chat)), text(&text), program(std::move(program)) {}
  using Rendered = Result<jinja::TrackedText>;
  Rendered render(const std::vector<Message> &messages, bool answer) const;
  /// Renders a JSON list.
  Rendered renderList(const nlohmann::ordered_json &messages, bool answer) const;
  Rendered renderBy(const jinja::Template &used, const nlohmann::ordered_json &messages,
                    const nlohmann::ordered_json &tools, bool answer) const;
  Result<Tokens> idsOf(const Rendered &rendered, size_t maxTokens = SIZE_MAX) const;
  /// Whether conversations have tools and the model has a separate template for them.
  bool hasToolTemplate() const { return toolProgram && tools; }

  Status useTools(const std::string &path);
  Status setTools(nlohmann::ordered_json list);
  Status findEndOfTurn();

  Manifest::Chat chat;
  const ProgramTokenizer *text;
  Program program;
  /// The template for conversations with tools, if there is one; an error if it cannot be run.
  std::optional<Result<Program>> toolProgram;
  std::shared_ptr<const nlohmann::ordered_json> tools; ///< null: none
  bool special = false;
  Tokens end;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_CHATTEMPLATE_H
