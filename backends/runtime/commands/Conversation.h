// A conversation and the part of it that is in the model's cache.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_CONVERSATION_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_CONVERSATION_H

#include "backends/runtime/engine/Scheduler.h"
#include "backends/runtime/text/ChatTemplate.h"

#include <functional>

namespace mica::rt {

/// The template is applied to the whole conversation in each turn; only tokens that are not in the
/// cache of the model yet are computed.
class Conversation {
public:
  struct Options {
    GenerationSettings settings;       ///< each answer after the first uses the next seed
    int64_t promptRows = 512;          ///< see Scheduler::Options
    uint64_t checkpointBytes = 0;      ///< see Scheduler::Options
    std::optional<std::string> system; ///< the system prompt
    /// Drop the oldest turns if a message does not fit in the context or leaves less than a quarter
    /// of it, or less than the maximum number of tokens, for the answer; and if an answer fills the
    /// context, which is then continued.
    bool contextShift = false;
  };
  struct Answer {
    std::string text;
    Finish finish = Finish::Length;
    int64_t promptTokens = 0, cachedTokens = 0; ///< of the conversation; of these, from the cache
    int64_t tokens = 0;                         ///< generated
    double promptSeconds = 0, decodeSeconds = 0;
    int64_t recomputedTokens = 0; ///< see Session::recomputedTokens
    double recomputeSeconds = 0;
    int64_t droppedTurns = 0; ///< see Options::contextShift
  };
  /// Receives the answer in pieces of complete characters; returns false to end it.
  using Listener = std::function<Result<bool>(const std::string &piece)>;

  /// `model`, `text` and `chatTemplate` must outlive the conversation.
  Conversation(const Model &model, const ProgramTokenizer &text, const ChatTemplate &chatTemplate,
               Options options);

  /// Sends `message` and receives the answer, which is kept even if the listener has ended it.
  /// After an error nothing is kept: the template rejects or drops the message, or the context is
  /// too short.
  Result<Answer> ask(Message message, const Listener &listener);
  /// Replaces the last answer by a new one.
  /// Errors: there is none, and those of `ask`.
  Result<Answer> regenerate(const Listener &listener);
  /// Starts over.
  void reset();
  /// The number of cached positions.
  int64_t length() const { return scheduler ? scheduler->cachedTokens(0) : 0; }

  const std::vector<Message> &messages() const { return said; }
  /// Continues another conversation; its system prompt, or none, replaces the current one.
  void setMessages(std::vector<Message> messages);
  const std::optional<std::string> &system() const { return options.system; }
  /// Replaces the system prompt.
  void setSystem(std::string text);
  const GenerationSettings &settings() const { return options.settings; }
  /// For further answers; without a seed, the current one is kept.
  void setSettings(GenerationSettings settings);

private:
  Status reserve();
  bool beginsWithSystem() const { return !said.empty() && said.front().role == "system"; }
  /// The tokens of the conversation followed by `message`.
  Result<Tokens> prompt(const Message &message);
  bool dropOldestTurn();
  /// `prompt` if `extra` further tokens fit in the context, else the prompt of the newest turns if
  /// options allow that. `dropped` counts the dropped turns.
  Result<Tokens> fitted(Result<Tokens> prompt, int64_t extra, int64_t &dropped);
  Result<Answer> answer(Tokens prompt, const Listener &listener);

  const Model &model;
  const ProgramTokenizer &text;
  const ChatTemplate &chatTemplate;
  Options options;
  std::vector<Message> said;
  std::unique_ptr<Scheduler> scheduler; ///< has one slot, which keeps the conversation
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_CONVERSATION_H
