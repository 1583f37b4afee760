// A conversation and what the model's cache holds of it.
#pragma once

#include "backends/runtime/engine/Scheduler.h"
#include "backends/runtime/text/ChatTemplate.h"

#include <functional>

namespace mica::rt {

/// Each turn the whole conversation goes through the template; of the ids only those are fed that
/// the cache does not hold from the turn before.
class Conversation {
public:
  struct Answer {
    std::string text;
    Finish finish = Finish::Length;
    int64_t promptTokens = 0, heldTokens = 0; ///< Of the conversation; of these from the cache.
    int64_t tokens = 0;                       ///< New ones.
    double promptSeconds = 0, decodeSeconds = 0;
    int64_t readAgain = 0; ///< Tokens fed once more, see Session.
    double readAgainSeconds = 0;
  };
  /// Hears pieces of the answer, whole characters; false ends it.
  using Listener = std::function<Result<bool>(const std::string &piece)>;

  /// All must outlive the conversation. `settings` are those of the first answer; each further one
  /// has the next seed. `promptRows`: see Scheduler::Options. `system`: what it begins with.
  Conversation(const Model &model, const Text &text, const ChatTemplate &chatTemplate,
               GenerationSettings settings, int64_t promptRows, std::optional<std::string> system);

  /// Says `message` and hears the answer, which is kept even where the listener has ended it.
  /// Errors: the template refuses or leaves the message out, the context is too short; nothing is
  /// kept then.
  Result<Answer> ask(Message message, const Listener &listener);
  /// Begins anew.
  void reset();
  /// Positions filled.
  int64_t length() const { return scheduler ? scheduler->cachedTokens(0) : 0; }

private:
  Status reserve();
  /// The conversation with one message more.
  Result<Tokens> prompt(const Message &message);
  Result<Answer> answer(const Tokens &prompt, const Listener &listener);

  const Model &model;
  const Text &text;
  const ChatTemplate &chatTemplate;
  GenerationSettings settings;
  int64_t promptRows;
  std::optional<std::string> system;
  std::vector<Message> messages;
  std::unique_ptr<Scheduler> scheduler; ///< Of one slot, which keeps what has been said.
};

} // namespace mica::rt
