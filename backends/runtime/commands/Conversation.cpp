#include "backends/runtime/commands/Conversation.h"
#include "backends/runtime/engine/Generate.h"
#include "backends/runtime/text/TextStream.h"

#include <algorithm>

namespace mica::rt {

namespace {
class Decoding final : public RequestListener {
public:
  Decoding(TextStream decoded, const Conversation::Listener &listener)
      : decoded(std::move(decoded)), listener(listener) {}

  Result<bool> token(int32_t token, std::span<const float>) override {
    if (Status delivered = deliver(decoded.push(token)); !delivered)
      return delivered.error();
    return wanted && !decoded.stopped();
  }
  bool shouldContinue() override {
    // There is no new text, but the listener may end the answer.
    if (wanted)
      if (Status delivered = deliver(""); !delivered)
        wanted = false;
    return wanted;
  }
  Status finish() { return deliver(decoded.finish()); }

  std::string text;

private:
  Status deliver(const std::string &piece) {
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

Conversation::Conversation(const Model &model, const ProgramTokenizer &text,
                           const ChatTemplate &chatTemplate, Options options)
    : model(model), text(text), chatTemplate(chatTemplate), options(std::move(options)) {
  if (!this->options.settings.seed)
    this->options.settings.seed = drawSeed();
  reset();
}

void Conversation::reset() {
  said.clear();
  if (options.system)
    said.push_back({"system", *options.system});
}

void Conversation::setMessages(std::vector<Message> messages) {
  said = std::move(messages);
  options.system = beginsWithSystem() ? std::optional(said.front().content) : std::nullopt;
}

void Conversation::setSystem(std::string text) {
  if (!beginsWithSystem())
    said.insert(said.begin(), Message{"system", ""});
  said.front().content = text;
  options.system = std::move(text);
}

void Conversation::setSettings(GenerationSettings settings) {
  if (!settings.seed)
    settings.seed = options.settings.seed;
  options.settings = std::move(settings);
}

Status Conversation::reserve() {
  if (scheduler)
    return {};
  Result<std::unique_ptr<Scheduler>> created = Scheduler::create(
      model,
      {.slots = 1, .promptRows = options.promptRows, .checkpointBytes = options.checkpointBytes});
  if (!created)
    return created.error();
  scheduler = *std::move(created);
  return {};
}

/// Removes the oldest turn: the messages from the first one after the system prompt to the next one
/// of the user. Returns false if only one turn is left.
bool Conversation::dropOldestTurn() {
  auto begin = said.begin() + beginsWithSystem();
  if (begin == said.end())
    return false;
  auto end = std::find_if(begin + 1, said.end(),
                          [](const Message &message) { return message.role == "user"; });
  if (end == said.end())
    return false;
  said.erase(begin, end);
  return true;
}

Result<Tokens> Conversation::fitted(Result<Tokens> prompt, int64_t extra, int64_t &dropped) {
  int64_t positions = model.manifest().maxSeq;
  int64_t answer = std::min(positions / 4, options.settings.maxTokens.value_or(positions));
  auto fits = [&] { return static_cast<int64_t>(prompt->size()) + extra + answer <= positions; };
  while (options.contextShift && prompt && !fits() && dropOldestTurn()) {
    ++dropped;
    prompt = chatTemplate.encode(said, true);
  }
  return prompt;
}

Result<Conversation::Answer> Conversation::answer(Tokens prompt, const Listener &listener) {
  if (prompt.empty())
    return Error{"the chat template produces no text for this conversation; send another message"};
  GenerationSettings settings = options.settings;
  Decoding decoding(TextStream(text.decoderAfter(prompt), settings.stops), listener);
  Answer answer;
  Tokens tokens; // of the answer
  for (uint64_t part = 0;; ++part) {
    Request request{.prompt = prompt,
                    .settings = settings,
                    .stream = part,
                    .maxReused = static_cast<int64_t>(prompt.size())};
    Result<GenerateResult> result = generate(*scheduler, {std::move(request)}, {&decoding});
    if (!result)
      return result.error();
    const RequestResult &made = result->texts[0];
    tokens.insert(tokens.end(), made.tokens.begin(), made.tokens.end());
    answer.finish = made.finish;
    if (part == 0) {
      answer.promptTokens = made.promptTokens;
      answer.cachedTokens = made.reusedTokens;
    }
    answer.promptSeconds += result->totals.promptSeconds;
    answer.decodeSeconds += result->totals.decodeSeconds;
    answer.recomputedTokens += result->totals.recomputedTokens;
    answer.recomputeSeconds += result->totals.recomputeSeconds;
    if (made.finish != Finish::ContextFull || !options.contextShift)
      break;
    // The answer continues after older turns have been dropped.
    int64_t before = answer.droppedTurns;
    auto length = static_cast<int64_t>(tokens.size());
    Result<Tokens> shorter = fitted(chatTemplate.encode(said, true), length, answer.droppedTurns);
    if (!shorter)
      return shorter.error();
    shorter->insert(shorter->end(), tokens.begin(), tokens.end());
    if (answer.droppedTurns == before || !checkPrompt(model.manifest(), *shorter))
      break;
    prompt = *std::move(shorter);
    if (settings.maxTokens)
      *settings.maxTokens -= static_cast<int64_t>(made.tokens.size());
  }
  if (Status ended = decoding.finish(); !ended)
    return ended.error();
  answer.text = std::move(decoding.text);
  answer.tokens = static_cast<int64_t>(tokens.size());
  return answer;
}

Result<Tokens> Conversation::prompt(const Message &message) {
  said.push_back(message);
  Result<Tokens> with = chatTemplate.encode(said, true);
  if (message.role == "user" || !with)
    return with;
  // Many templates ignore unknown roles.
  said.back().content += ".";
  Result<Tokens> other = chatTemplate.encode(said, true);
  said.back() = message;
  if (other && *other == *with)
    return Error{"the chat template ignores messages of the role '" + message.role +
                 "'; send it as a user message"};
  return with;
}

Result<Conversation::Answer> Conversation::ask(Message message, const Listener &listener) {
  if (Status reserved = reserve(); !reserved)
    return reserved.error();
  std::vector<Message> before = said;
  int64_t dropped = 0;
  Result<Tokens> prompt = fitted(this->prompt(message), 0, dropped);
  Result<Answer> result =
      prompt ? answer(*std::move(prompt), listener) : Result<Answer>(prompt.error());
  if (result) {
    result->droppedTurns += dropped;
    said.push_back({"assistant", result->text});
  } else {
    said = std::move(before);
  }
  // The next turn uses another seed.
  ++*options.settings.seed;
  return result;
}

Result<Conversation::Answer> Conversation::regenerate(const Listener &listener) {
  if (said.size() < 2 || said.back().role != "assistant" || said[said.size() - 2].role == "system")
    return Error{"there is no answer to regenerate; send a message first"};
  std::vector<Message> before = said;
  said.pop_back();
  Message last = std::move(said.back());
  said.pop_back();
  Result<Answer> result = ask(std::move(last), listener);
  if (!result)
    said = std::move(before);
  return result;
}

} // namespace mica::rt
