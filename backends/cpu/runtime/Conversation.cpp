#include "backends/cpu/runtime/Conversation.h"
#include "backends/cpu/runtime/StopText.h"

#include <algorithm>

namespace mica::rt {

namespace {
class Decoding final : public GenerateListener {
public:
  Decoding(Tokenizer::Decoder decoder, const std::vector<std::string> &stops,
           const Conversation::Listener &listener)
      : decoder(std::move(decoder)), stop(stops), listener(listener) {}

  Status token(int64_t, int32_t token) override { return hear(stop.push(decoder.push(token))); }
  bool goesOn(int64_t) override {
    // Also asked while the prompt is read, when there is nothing to hear.
    if (wanted)
      if (Status heard = hear(""); !heard)
        wanted = false;
    return wanted && !stop.stopped();
  }
  Status finish() {
    std::string rest = stop.push(decoder.finish());
    return hear(rest + stop.finish());
  }

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

  Tokenizer::Decoder decoder;
  StopText stop;
  const Conversation::Listener &listener;
  bool wanted = true;
};
} // namespace

Conversation::Conversation(const Model &model, const Text &text, const ChatTemplate &chatTemplate,
                           const Tokens &endOfTurn, GenerateOptions options,
                           std::optional<std::string> system, std::vector<std::string> stops)
    : model(model), text(text), chatTemplate(chatTemplate), options(std::move(options)),
      system(std::move(system)), stops(std::move(stops)) {
  this->options.endTokens = endOfTurn;
  reset();
}

void Conversation::reset() {
  messages.clear();
  if (system)
    messages.push_back({"system", *system});
}

Status Conversation::reserve() {
  if (session)
    return {};
  Result<std::unique_ptr<Session>> created = Session::create(model, 1, options.prefillChunk);
  if (!created)
    return created.error();
  session = *std::move(created);
  return {};
}

Result<Conversation::Answer> Conversation::answer(const Tokens &prompt, const Listener &listener) {
  if (prompt.empty())
    return Error{"the chat template makes no text of this conversation, say something else"};
  // What is refused before anything is fed leaves the cache as it is.
  if (Status fits = checkPrompt(model.manifest(), prompt); !fits)
    return fits.error();
  // The logits of the last position are wanted: it is fed in any case.
  auto same = std::mismatch(prompt.begin(), prompt.end() - 1, held.begin(), held.end());
  options.held = same.first - prompt.begin();
  Decoding decoding(text.decoderAfter(prompt), stops, listener);
  Result<GenerateResult> result = generate(model, *session, {prompt}, options, decoding);
  // Whatever has happened, the cache holds this much of both.
  held = prompt;
  if (result)
    held.insert(held.end(), result->sequences[0].tokens.begin(), result->sequences[0].tokens.end());
  held.resize(std::min(held.size(), result ? static_cast<size_t>(session->length(0)) : 0));
  if (!result)
    return result.error();
  if (Status ended = decoding.finish(); !ended)
    return ended.error();
  return Answer{std::move(decoding.text),
                result->sequences[0].finish,
                static_cast<int64_t>(prompt.size()),
                options.held,
                static_cast<int64_t>(result->sequences[0].tokens.size()),
                result->promptSeconds,
                result->decodeSeconds,
                result->readAgain,
                result->readAgainSeconds};
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
  ++options.sampling.seed;
  return result;
}

} // namespace mica::rt
