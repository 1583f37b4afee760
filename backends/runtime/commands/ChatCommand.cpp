#include "backends/runtime/commands/ChatCommand.h"
#include "backends/runtime/commands/Conversation.h"
#include "backends/runtime/commands/GenerationReport.h"
#include "backends/runtime/commands/OpenChatInput.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Report.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace mica::rt {

namespace {
constexpr std::string_view toolResult = "/tool ";
constexpr const char *help =
    "/help   this list\n"
    "/reset  forget the conversation and begin anew\n"
    "/tool RESULT  say what a tool that the model has called gives\n"
    "/exit   leave, as Ctrl-D does\n"
    "A line that ends with a backslash goes on with the next; lines between \"\"\" and \"\"\" are "
    "one turn,\nand so is what is pasted. Ctrl-C stops an answer, or leaves a turn unsaid. A turn "
    "that "
    "begins with\na slash is written with two.\n";

class Chat {
public:
  Chat(const ChatArguments &arguments, Conversation &conversation, ChatInput &input,
       int64_t positions)
      : arguments(arguments), conversation(conversation), input(input), positions(positions),
        terminal(isatty(STDOUT_FILENO)) {}

  Status run() {
    if (input.interactive())
      reportNote("Ctrl-C stops an answer, /help lists what else there is");
    for (;;) {
      Result<std::optional<std::string>> turn = input.read();
      if (!turn)
        return turn.error();
      if (!*turn)
        return end();
      bool leaves = false;
      if (Status done = take(**turn, leaves); !done)
        return done;
      if (leaves)
        return end();
    }
  }

private:
  /// A command or something said.
  Status take(const std::string &turn, bool &leaves) {
    if (turn.find_first_not_of(" \t\r\n") == turn.npos)
      return {};
    if (turn.starts_with("//"))
      return say(turn.substr(1));
    if (!turn.starts_with("/"))
      return say(turn);
    if (turn.starts_with(toolResult))
      return say(turn.substr(toolResult.size()), "tool");
    leaves = turn == "/exit";
    if (turn == "/help")
      return writeTo(STDERR_FILENO, help);
    if (turn == "/reset")
      conversation.reset();
    else if (!leaves)
      reportNote("there is no command '" + turn.substr(0, turn.find(' ')) +
                 "': /help, /reset, /tool and /exit are known, and // begins a turn with a slash");
    return {};
  }

  Status say(const std::string &turn, const char *role = "user") {
    takeInterrupt();
    interrupted = false;
    bool newline = true;
    auto listener = [&](const std::string &piece) -> Result<bool> {
      interrupted |= takeInterrupt();
      if (!piece.empty()) {
        newline = piece.ends_with('\n');
        if (!arguments.json)
          if (Status done = writeOut(terminal ? harmless(piece) : piece); !done)
            return done.error();
      }
      return !interrupted;
    };
    Result<Conversation::Answer> answer = conversation.ask({role, turn}, listener);
    if (!answer)
      return refuse(answer.error());
    if (arguments.json)
      return writeOut(report(*answer));
    if (!newline || answer->text.empty())
      if (Status done = writeOut("\n"); !done)
        return done;
    note(*answer);
    return {};
  }

  /// What has gone wrong with one turn does not end a conversation, in which something else is said
  /// next.
  Status refuse(const Error &error) {
    if (!input.interactive()) {
      refused = true;
      reportError(error.message);
      return {};
    }
    reportNote(error.message + (conversation.length() > 0 ? "; /reset begins anew" : ""));
    return {};
  }

  /// Each refusal has been reported when it happened.
  Status end() const { return refused ? Status(Error{}) : Status(); }

  void note(const Conversation::Answer &answer) const {
    if (interrupted)
      reportNote("stopped");
    else if (answer.finish == Finish::Length)
      reportNote("the answer was ended after " + std::to_string(answer.tokens) +
                 " tokens, -n allows more");
    else if (answer.finish == Finish::ContextFull)
      reportNote("the context of " + std::to_string(positions) +
                 " positions is full, /reset begins anew");
    if (!arguments.run.verbose)
      return;
    char line[160];
    std::snprintf(
        line, sizeof line,
        "%lld tokens of the conversation, %lld of them from the cache, in %.2f s; answer: "
        "%lld tokens in %.2f s",
        static_cast<long long>(answer.promptTokens), static_cast<long long>(answer.heldTokens),
        answer.promptSeconds, static_cast<long long>(answer.tokens), answer.decodeSeconds);
    reportNote(line);
    noteReadAgain(answer.readAgain, answer.readAgainSeconds);
  }

  std::string report(const Conversation::Answer &answer) const {
    return toJsonText({{"role", "assistant"},
                       {"content", answer.text},
                       {"finish", interrupted ? "interrupt" : nameOf(answer.finish)},
                       {"prompt_tokens", answer.promptTokens},
                       {"held_tokens", answer.heldTokens},
                       {"tokens", answer.tokens}}) +
           "\n";
  }

  const ChatArguments &arguments;
  Conversation &conversation;
  ChatInput &input;
  int64_t positions;
  bool terminal, interrupted = false;
  bool refused = false; ///< A turn of a pipe was.
};
} // namespace

Status chatCommand(const Model &model, const ChatArguments &arguments) {
  Result<std::unique_ptr<Text>> text = Text::load(model.file(), model.manifest());
  if (!text)
    return text.error();
  Result<ChatTemplate> chatTemplate = ChatTemplate::load(model.manifest(), text->get());
  if (!chatTemplate)
    return chatTemplate.error();
  chatTemplate->allowSpecial(arguments.run.special);
  if (arguments.tools)
    if (Status used = chatTemplate->useTools(*arguments.tools); !used)
      return used;
  if (Status usable = checkUsable(arguments.run.settings, model.manifest(), text->get()); !usable)
    return usable;
  Result<Tokens> endOfTurn = chatTemplate->endOfTurn();
  if (!endOfTurn)
    return endOfTurn.error();
  GenerationSettings settings = arguments.run.settings;
  settings.endTokens = *std::move(endOfTurn);
  if (!settings.maxTokens)
    settings.maxTokens = model.manifest().maxSeq;
  Conversation conversation(model, **text, *chatTemplate, std::move(settings),
                            rowsOfChunk(arguments.run.prefillChunk, model.manifest()),
                            arguments.system);
  std::unique_ptr<ChatInput> input = openChatInput(arguments.history);
  return Chat(arguments, conversation, *input, model.manifest().maxSeq).run();
}

} // namespace mica::rt
