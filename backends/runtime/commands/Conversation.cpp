#include "backends/runtime/commands/Conversation.h"
#include "backends/runtime/engine/Generate.h"
#include "backends/runtime/text/TextStream.h"

namespace mica::rt {

namespace {
class Decoding final : public RequestListener {
public:
  Decoding(TextStream decoded, const Conversation::Listener &listener)
      : decoded(std::move(decoded)), listener(listener) {}

  Result<bool> token(int32_t token, std::span<const float>) override {
    if (Status heard = hear(decoded.push(token)); !heard)
      return heard.error();
    return wanted && !decoded.stopped();
  }
  bool shouldContinue() override {
    // Nothing new is heard, but the listener may have had enough.
    if (wanted)
      if (Status heard = hear(""); !heard)
        wanted = false;
    return wanted;
  }
  Status finish() { return hear(decoded.finish()); }

  std::string text;

private:
  Status hear(const std::string &piece) {
    text += piece;
    Result<bool> more = listener(piece);
    if (!more)
      return more.error();
    wanted &= *more;
    return {};
  }

  TextStream decoded;
  const Conversation::Listener &listener;
  bool wanted = true;
};
} // namespace

Conversation::Conversation(const Model &model, const Text &text, const ChatTemplate &chatTemplate,
                           GenerationSettings settings, int64_t promptRows,
                           std::optional<std::string> system)
    : model(model), text(text), chatTemplate(chatTemplate), settings(std::move(settings)),
      promptRows(promptRows), system(std::move(system)) {
  if (!this->settings.seed)
    this->settings.seed = drawSeed();
  reset();
}

void Conversation::reset() {
  messages.clear();
  if (system)
    messages.push_back({"system", *system});
}

Status Conversation::reserve() {
  if (scheduler)
    return {};
  Result<std::unique_ptr<Scheduler>> created =
      Scheduler::create(model, {.slots = 1, .promptRows = promptRows});
  if (!created)
    return created.error();
  scheduler = *std::move(created);
  return {};
}

Result<Conversation::Answer> Conversation::answer(const Tokens &prompt, const Listener &listener) {
  if (prompt.empty())
    return Error{"the chat template makes no text of this conversation, say something else"};
  Decoding decoding(TextStream(text.decoderAfter(prompt), settings.stops), listener);
  Request request{
      .prompt = prompt, .settings = settings, .maxReused = static_cast<int64_t>(prompt.size())};
  Result<GenerateResult> result = generate(*scheduler, {std::move(request)}, {&decoding});
  if (!result)
    return result.error();
  if (Status ended = decoding.finish(); !ended)
    return ended.error();
  const RequestResult &made = result->texts[0];
  return Answer{std::move(decoding.text),
                made.finish,
                made.promptTokens,
                made.reusedTokens,
                static_cast<int64_t>(made.tokens.size()),
                result->totals.promptSeconds,
                result->totals.decodeSeconds,
                result->totals.recomputedTokens,
                result->totals.recomputeSeconds};
}

Result<Tokens> Conversation::prompt(const Message &message) {
  messages.push_back(message);
  Result<Tokens> with = chatTemplate.encode(messages, true);
  if (message.role == "user" || !with)
    return with;
  // Many templates pass over the roles that they do not know.
  messages.back().content += ".";
  Result<Tokens> other = chatTemplate.encode(messages, true);
  messages.back() = message;
  if (other && *other == *with)
    return Error{"the chat template leaves out what the role '" + message.role +
                 "' says, say it as yourself"};
  return with;
}

Result<Conversation::Answer> Conversation::ask(Message message, const Listener &listener) {
  if (Status reserved = reserve(); !reserved)
    return reserved.error();
  Result<Tokens> prompt = this->prompt(message);
  Result<Answer> result = prompt ? answer(*prompt, listener) : Result<Answer>(prompt.error());
  if (result)
    messages.push_back({"assistant", result->text});
  else
    messages.pop_back();
  // The next turn draws other numbers.
  ++*settings.seed;
  return result;
}

} // namespace mica::rt
