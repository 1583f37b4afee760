// A conversation and what the model's cache holds of it.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_CONVERSATION_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_CONVERSATION_H

#include "backends/runtime/engine/Scheduler.h"
#include "backends/runtime/text/ChatTemplate.h"

#include <functional>

namespace mica::rt {

/// The template is applied to the whole conversation in each
/// turn; only ids that the cache does not hold yet are computed.
class Conversation {
public:
  struct Options {
    GenerationSettings settings;       ///< Each answer after the first has the next seed.
    int64_t promptRows = 512;          ///< See Scheduler::Options.
    std::optional<std::string> system; ///< What the conversation begins with.
    /// Drop the oldest turns if a message does not fit in the context, or leaves less of it for
    /// the answer than a quarter or the maximum number of tokens; and if an answer fills it, which
    /// then continues.
    bool contextShift = false;
  };
  struct Answer {
    std::string text;
    Finish finish = Finish::Length;
    int64_t promptTokens = 0, cachedTokens = 0; ///< Of the conversation; of these from the cache.
    int64_t tokens = 0;                         ///< New ones.
    double promptSeconds = 0, decodeSeconds = 0;
    int64_t recomputedTokens = 0; ///< See Session::recomputedTokens.
    double recomputeSeconds = 0;
    int64_t droppedTurns = 0; ///< See Options::contextShift.
  };
  /// Receives pieces of the answer, whole characters; false ends it.
  using Listener = std::function<Result<bool>(const std::string &piece)>;

  /// `model`, `text` and `chatTemplate` must outlive the conversation.
  Conversation(const Model &model, const ProgramTokenizer &text, const ChatTemplate &chatTemplate,
               Options options);

  /// Sends `message` and receives the answer, which is kept even if the listener has ended it.
  /// Errors, after which nothing is kept: the template rejects or drops the message, the context is
  /// too short.
  Result<Answer> ask(Message message, const Listener &listener);
  /// Replaces the last answer by a new
  /// one. Errors: there is none, and those of `ask`.
  Result<Answer> regenerate(const Listener &listener);
  /// Starts over.
  void reset();
  /// Positions filled.
  int64_t length() const { return scheduler ? scheduler->cachedTokens(0) : 0; }

  const std::vector<Message> &messages() const { return said; }
  /// Continues another conversation. Where it begins with a system prompt, that one holds from now
  /// on, else none.
  void setMessages(std::vector<Message> messages);
  const std::optional<std::string> &system() const { return options.system; }
  /// Replaces what the conversation begins with; the rest of it stays.
  void setSystem(std::string text);
  const GenerationSettings &settings() const { return options.settings; }
  /// Of the answers from now on; the seed stays where it is absent.
  void setSettings(GenerationSettings settings);

private:
  Status reserve();
  bool beginsWithSystem() const { return !said.empty() && said.front().role == "system"; }
  /// The conversation with one message more.
  Result<Tokens> prompt(const Message &message);
  bool dropOldestTurn();
  /// `prompt` of the conversation with `extra` tokens after it, or of its newest turns where
  /// options want that. Counts the others.
  Result<Tokens> fitted(Result<Tokens> prompt, int64_t extra, int64_t &dropped);
  Result<Answer> answer(Tokens prompt, const Listener &listener);

  const Model &model;
  const ProgramTokenizer &text;
  const ChatTemplate &chatTemplate;
  Options options;
  std::vector<Message> said;
  std::unique_ptr<Scheduler> scheduler; ///< With one slot, which keeps the conversation.
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_CONVERSATION_H
