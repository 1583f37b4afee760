// A conversation and what the model's cache holds of it.
#pragma once

#include "backends/cpu/runtime/ChatTemplate.h"
#include "backends/cpu/runtime/Generate.h"

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

  /// All must outlive the conversation. `system`: what it begins with; `stops`: what ends an answer
  /// and is no part of it. `endOfTurn`: the template's.
  Conversation(const Model &model, const Text &text, const ChatTemplate &chatTemplate,
               const Tokens &endOfTurn, GenerateOptions options, std::optional<std::string> system,
               std::vector<std::string> stops);

  /// Says `message` and hears the answer, which is kept even where the listener has ended it.
  /// Errors: the template refuses or leaves the message out, the context is too short; nothing is
  /// kept then.
  Result<Answer> ask(Message message, const Listener &listener);
  /// Begins anew.
  void reset();
  /// Positions filled.
  int64_t length() const { return static_cast<int64_t>(held.size()); }

private:
  Status reserve();
  /// The conversation with one message more.
  Result<Tokens> prompt(const Message &message);
  Result<Answer> answer(const Tokens &prompt, const Listener &listener);

  const Model &model;
  const Text &text;
  const ChatTemplate &chatTemplate;
  GenerateOptions options;
  std::optional<std::string> system;
  std::vector<std::string> stops;
  std::vector<Message> messages;
  std::unique_ptr<Session> session;
  Tokens held; ///< The ids in the cache.
};

} // namespace mica::rt
