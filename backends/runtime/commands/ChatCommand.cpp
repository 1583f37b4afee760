#include "backends/runtime/commands/ChatCommand.h"
#include "backends/runtime/commands/Conversation.h"
#include "backends/runtime/commands/ConversationFile.h"
#include "backends/runtime/commands/GenerationOptions.h"
#include "backends/runtime/commands/GenerationReport.h"
#include "backends/runtime/commands/OpenChatInput.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/SizeText.h"
#include "backends/runtime/support/Spelling.h"
#include "backends/runtime/text/ProgramText.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace mica::rt {

namespace {
/// The share of the context, in percent, from which the user is warned that it is almost full.
constexpr int64_t almostFull = 90;

class Chat {
public:
  Chat(const ChatArguments &arguments, Conversation &conversation, ChatInput &input,
       const Model &model, const ProgramTokenizer &text)
      : arguments(arguments), conversation(conversation), input(input), model(model), text(text),
        positions(model.manifest().maxSeq), terminal(isatty(STDOUT_FILENO)) {}

  Status run() {
    if (input.interactive())
      reportNote("Ctrl-C stops an answer; /help lists the commands");
    for (;;) {
      Result<std::optional<std::string>> turn = input.read();
      if (!turn)
        return turn.error();
      if (!*turn)
        return end();
      if (Status done = take(**turn); !done)
        return done;
      if (leaves)
        return end();
    }
  }

private:
  struct Command {
    const char *name;
    const char *alias; ///< the name in ollama; "": none
    const char *argument, *help;
    Status (Chat::*run)(const std::string &argument);
  };
  static const std::vector<Command> &commands() {
    static const std::vector<Command> all = {
        {"/help", "/?", "", "this list", &Chat::showHelp},
        {"/set", "", "[NAME VALUE]", "show the settings, or change one: /set temperature 0.2",
         &Chat::set},
        {"/system", "", "[TEXT]", "show or replace the system prompt", &Chat::setSystem},
        {"/regenerate", "", "", "regenerate the last answer", &Chat::regenerate},
        {"/reset", "/clear", "", "forget the conversation and start over", &Chat::reset},
        {"/save", "", "FILE", "write the conversation to a file (JSON)", &Chat::save},
        {"/load", "", "FILE", "continue the conversation in a file", &Chat::load},
        {"/stats", "", "", "tokens, speed and remaining context", &Chat::showStats},
        {"/tool", "", "RESULT", "send the result of a tool that the model has called",
         &Chat::sendToolResult},
        {"/exit", "/bye", "", "exit, as with Ctrl-D", &Chat::leave},
    };
    return all;
  }

  /// Processes a command or a message.
  Status take(const std::string &turn) {
    if (turn.find_first_not_of(" \t\r\n") == turn.npos)
      return {};
    if (turn.starts_with("//"))
      return say(turn.substr(1));
    if (!turn.starts_with("/"))
      return say(turn);
    size_t end = std::min(turn.find_first_of(" \t\n"), turn.size());
    std::string name = turn.substr(0, end);
    std::string argument = turn.substr(std::min(end + 1, turn.size()));
    std::vector<std::string> names;
    for (const Command &command : commands()) {
      if (command.name == name || command.alias == name)
        return start(command, argument);
      names.emplace_back(command.name);
    }
    std::string closest = closestWord(name, names);
    reportNote("there is no command '" + name + "'" +
               (closest.empty() ? "; see /help, or begin a message with // to send one slash"
                                : didYouMean(closest)));
    return {};
  }

  Status start(const Command &command, const std::string &argument) {
    std::string_view expected = command.argument;
    if (argument.empty() && !expected.empty() && !expected.starts_with('['))
      return refuse(Error{std::string(command.name) + " needs an argument: " + command.name + " " +
                          command.argument});
    return (this->*command.run)(argument);
  }

  Status showHelp(const std::string & /*none*/) {
    std::string text;
    for (const Command &command : commands()) {
      std::string usage = std::string(command.name) + " " + command.argument;
      usage.resize(std::max<size_t>(usage.size(), 20), ' ');
      text += usage + command.help;
      text += *command.alias ? std::string("; also ") + command.alias + "\n" : "\n";
    }
    text +=
        "A backslash at the end of a line continues the message on the next line. Lines between\n"
        "\"\"\" and \"\"\", and pasted lines, are one message. Ctrl-C stops an answer or discards "
        "the\ninput. To send a message that begins with a slash, type two slashes.\n";
    return writeTo(STDERR_FILENO, text);
  }

  Status set(const std::string &argument) {
    if (argument.empty())
      return showSettings();
    size_t end = argument.find(' ');
    if (end == argument.npos)
      return refuse(Error{"/set needs a value: /set " + argument + " VALUE"});
    GenerationSettings changed = conversation.settings();
    std::string name = argument.substr(0, end), value = argument.substr(end + 1);
    if (Status status = changeSetting(changed, name, value); !status)
      return refuse(status.error());
    Result<GenerationSettings> usable = usableSettings(std::move(changed), model.manifest(), &text);
    if (!usable)
      return refuse(usable.error());
    conversation.setSettings(*std::move(usable));
    std::replace(name.begin(), name.end(), '_', '-');
    reportNote(name + " is " + value);
    return {};
  }

  Status showSettings() {
    std::string all;
    for (auto &[name, value] : describeSettings(conversation.settings(), model.manifest())) {
      std::string line = name;
      line.resize(std::max<size_t>(line.size(), 22), ' ');
      all += line + value + "\n";
    }
    return writeTo(STDERR_FILENO, sanitizeForTerminal(all));
  }

  Status setSystem(const std::string &argument) {
    if (argument.empty() && conversation.system())
      return writeTo(STDERR_FILENO, sanitizeForTerminal(*conversation.system()) + "\n");
    if (argument.empty()) {
      reportNote("no system prompt; set one with /system TEXT");
      return {};
    }
    conversation.setSystem(argument);
    reportNote("the system prompt is set");
    return {};
  }

  Status regenerate(const std::string & /*none*/) {
    return streamAnswer(
        [&](const Conversation::Listener &listener) { return conversation.regenerate(listener); });
  }

  Status reset(const std::string & /*none*/) {
    conversation.reset();
    warned = false;
    reportNote("the conversation is cleared");
    return {};
  }

  static std::string countOf(size_t messages) {
    return countText(static_cast<int64_t>(messages), "message");
  }

  Status save(const std::string &path) {
    if (Status saved = saveConversation(path, conversation.messages()); !saved)
      return refuse(saved.error());
    reportNote("saved " + countOf(conversation.messages().size()) + " to " + path);
    return {};
  }

  Status load(const std::string &path) {
    Result<std::vector<Message>> loaded = loadConversation(path);
    if (!loaded)
      return refuse(loaded.error());
    reportNote("loaded " + countOf(loaded->size()) + " from " + path);
    conversation.setMessages(*std::move(loaded));
    warned = false;
    return {};
  }

  Status showStats(const std::string & /*none*/) {
    int64_t used = conversation.length();
    char lines[240];
    std::snprintf(lines, sizeof lines,
                  "context     %lld of %lld positions (%lld %%)\n"
                  "prompts     %lld tokens, %.1f per second\n"
                  "answers     %lld tokens, %.1f per second\n",
                  static_cast<long long>(used), static_cast<long long>(positions),
                  static_cast<long long>(percent(used)),
                  static_cast<long long>(total.promptTokens - total.cachedTokens),
                  tokensPerSecond(total.promptTokens - total.cachedTokens, total.promptSeconds),
                  static_cast<long long>(total.tokens),
                  tokensPerSecond(total.tokens, total.decodeSeconds));
    return writeTo(STDERR_FILENO, lines);
  }

  Status sendToolResult(const std::string &result) { return say(result, "tool"); }

  Status leave(const std::string & /*none*/) {
    leaves = true;
    return {};
  }

  Status say(const std::string &turn, const char *role = "user") {
    return streamAnswer([&](const Conversation::Listener &listener) {
      return conversation.ask({role, turn}, listener);
    });
  }

  /// Streams an answer of the conversation to stdout.
  Status
  streamAnswer(const std::function<Result<Conversation::Answer>(const Conversation::Listener &)>
                   &answering) {
    takeInterrupt();
    interrupted = false;
    bool newline = true;
    auto listener = [&](const std::string &piece) -> Result<bool> {
      interrupted |= takeInterrupt();
      if (!piece.empty()) {
        newline = piece.ends_with('\n');
        if (!arguments.json)
          if (Status done = writeOut(terminal ? sanitizeForTerminal(piece) : piece); !done)
            return done.error();
      }
      return !interrupted;
    };
    Result<Conversation::Answer> answer = answering(listener);
    if (!answer)
      return refuse(answer.error(),
                    /*hint=*/conversation.length() > 0 ? "; /reset starts over" : "");
    total.promptTokens += answer->promptTokens;
    total.cachedTokens += answer->cachedTokens;
    total.tokens += answer->tokens;
    total.promptSeconds += answer->promptSeconds;
    total.decodeSeconds += answer->decodeSeconds;
    if (answer->droppedTurns > 0)
      warned = false;
    if (arguments.json) {
      Status written = writeOut(report(*answer));
      warnAboutContext(*answer);
      return written;
    }
    if (!newline || answer->text.empty())
      if (Status done = writeOut("\n"); !done)
        return done;
    note(*answer);
    return {};
  }

  /// An error in one turn does not end the conversation, because the next turn may be
  /// valid.
  Status refuse(const Error &error, const char *hint = "") {
    if (!input.interactive()) {
      refused = true;
      reportError(error.message + hint);
      return {};
    }
    reportNote(error.message + hint);
    return {};
  }

  /// Errors have already been reported.
  Status end() const { return refused ? Status(Error{}) : Status(); }

  void note(const Conversation::Answer &answer) {
    if (interrupted)
      reportNote("stopped");
    else if (answer.finish == Finish::Length)
      reportNote("the answer was cut off after " + countText(answer.tokens, "token") +
                 "; raise the limit with -n");
    else if (answer.finish == Finish::ContextFull)
      reportNote("the context (" + std::to_string(positions) +
                 " positions) is full; /reset starts over");
    if (answer.droppedTurns > 0)
      reportNote("the context is full: the oldest turns were dropped (" +
                 std::to_string(answer.droppedTurns) + ")");
    warnAboutContext(answer);
    if (!arguments.run.verbose)
      return;
    char line[160];
    std::snprintf(line, sizeof line,
                  "prompt: %lld tokens, %lld of them cached, in %.2f s; answer: "
                  "%lld tokens in %.2f s",
                  static_cast<long long>(answer.promptTokens),
                  static_cast<long long>(answer.cachedTokens), answer.promptSeconds,
                  static_cast<long long>(answer.tokens), answer.decodeSeconds);
    reportNote(line);
    noteRecomputed(answer.recomputedTokens, answer.recomputeSeconds);
  }

  int64_t percent(int64_t used) const { return used * 100 / positions; }

  /// Warns once, before the context is full.
  void warnAboutContext(const Conversation::Answer &answer) {
    int64_t used = conversation.length();
    if (warned || answer.finish == Finish::ContextFull || percent(used) < almostFull)
      return;
    warned = true;
    reportWarning("the context is " + std::to_string(percent(used)) + " % full (" +
                  std::to_string(used) + " of " + std::to_string(positions) + " positions): " +
                  (arguments.contextShift ? "the oldest turns will be dropped"
                                          : "/reset starts over, and with --context-shift the "
                                            "oldest turns are dropped"));
  }

  std::string report(const Conversation::Answer &answer) const {
    return toJsonText({{"role", "assistant"},
                       {"content", answer.text},
                       {"finish", interrupted ? "interrupt" : nameOf(answer.finish)},
                       {"prompt_tokens", answer.promptTokens},
                       {"cached_tokens", answer.cachedTokens},
                       {"tokens", answer.tokens},
                       {"dropped_turns", answer.droppedTurns}}) +
           "\n";
  }

  const ChatArguments &arguments;
  Conversation &conversation;
  ChatInput &input;
  const Model &model;
  const ProgramTokenizer &text;
  int64_t positions;
  bool terminal, interrupted = false;
  bool refused = false; ///< a turn from a pipe was rejected
  bool leaves = false;
  bool warned = false;        ///< about the almost full context
  Conversation::Answer total; ///< counts and seconds of all answers
};
} // namespace

Status chatCommand(const Model &model, const ChatArguments &arguments) {
  Result<ProgramText> text =
      ProgramText::load(model.file(), model.manifest(), arguments.run.templateFile);
  if (!text)
    return text.error();
  Result<ChatTemplate> chatTemplate = text->chatTemplate(arguments.run.chatTemplate);
  if (!chatTemplate)
    return chatTemplate.error();
  Result<GenerationSettings> usable =
      usableSettings(arguments.run.settings, model.manifest(), text->tokenizer.get());
  if (!usable)
    return usable.error();
  GenerationSettings settings = *std::move(usable);
  settings.endTokens = chatTemplate->endOfTurn();
  if (!settings.maxTokens)
    settings.maxTokens = model.manifest().maxSeq;
  Result<uint64_t> checkpoints = checkpointBudget(model.manifest(), arguments.run.checkpointBytes,
                                                  model.memoryBesidesWeights());
  if (!checkpoints)
    return checkpoints.error();
  Conversation conversation(
      model, *text->tokenizer, *chatTemplate,
      {.settings = std::move(settings),
       .promptRows = prefillChunkSize(arguments.run.prefillChunk, model.manifest()),
       .checkpointBytes = *checkpoints,
       .system = arguments.run.system,
       .contextShift = arguments.contextShift});
  std::unique_ptr<ChatInput> input = openChatInput(arguments.history);
  return Chat(arguments, conversation, *input, model, *text->tokenizer).run();
}

} // namespace mica::rt
