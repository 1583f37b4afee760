// How a model marks the parts of its answers: reasoning before the answer proper, and calls of
// tools. Both are conventions of families of models, which a chat template shows.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_ANSWERFORMAT_H
#define MICA_BACKENDS_RUNTIME_TEXT_ANSWERFORMAT_H

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

struct ReasoningFormat {
  std::string_view begin, end;
};

/// A call as a model has written it.
struct ToolCall {
  std::string name;
  std::string arguments; ///< A JSON object.
};

/// Calls are JSON objects with the name of a function and its arguments, or arrays of these.
struct ToolCallFormat {
  const char *name;
  /// What is written before and after a call; no end: it ends with its JSON.
  std::string_view begin, end;
  std::string_view argumentsKey; ///< Beside "name".
  /// An answer that begins with an object is a call without a beginning.
  bool bare = false;
  /// The templates of this format tell the model how to call, but leave out the calls of earlier
  /// turns, which are therefore written as contents.
  bool asContent = false;

  /// A call as the model would write it.
  std::string write(const ToolCall &call) const;
};

/// All that are known, one per family of models.
std::span<const ToolCallFormat> toolCallFormats();

struct AnswerFormat {
  const ReasoningFormat *reasoning = nullptr; ///< Null: the template marks none.
  const ToolCallFormat *calls = nullptr;      ///< Null: none that is known.
};

/// What a template writes of a conversation with `tools`, both JSON, followed by the beginning of
/// an answer if `answer`; absent: it refuses.
using RenderConversation = std::function<std::optional<std::string>(
    const std::string &messages, const std::string &tools, bool answer)>;

/// The format of the answers to a template: that of calls is the first by which a call is found in
/// what the template itself writes of a conversation with one.
AnswerFormat detectAnswerFormat(std::string_view source, const RenderConversation &render);

/// Splits an answer, however its text comes in pieces.
///
/// A call begins as soon as the name of a function and the beginning of its arguments have come, if
/// the model writes them in this order. Its arguments are then handed on as they come and as the
/// model has written them: whether they are JSON is known when it is too late to make content of
/// them.
class AnswerReader {
public:
  struct Part {
    enum class Kind {
      Content,
      Reasoning,
      Call,      ///< One begins; the text is the name of the function.
      Arguments, ///< Of that call.
    };
    Kind kind = Kind::Content;
    std::string text; ///< What it continues with.
  };

  /// `tools` are the names of the functions that can be called; none: no calls are looked for.
  /// `reasons`: the prompt ends with the beginning of reasoning.
  AnswerReader(const AnswerFormat &format, std::vector<std::string> tools, bool reasons);

  std::vector<Part> push(std::string_view text);
  /// The end of the answer. What may have become a call and is none is content.
  std::vector<Part> finish();
  /// Whether the arguments of a call have begun and not ended.
  bool inArguments() const { return state == State::Arguments; }

private:
  enum class State {
    Start,
    Content,
    Reasoning,
    Call, ///< May have begun.
    Arguments,
    AfterArguments, ///< Before the end of the call's object.
    BetweenCalls,   ///< Of an array.
    AfterCall,
  };
  struct CallStart {
    std::string name;
    size_t arguments; ///< Where they begin.
    bool inArray;
  };

  bool advance(bool atEnd);
  bool readStart(bool atEnd);
  bool readContent(bool atEnd);
  bool readReasoning(bool atEnd);
  bool readCall(bool atEnd);
  bool readArguments();
  bool readAfterArguments();
  bool readBetweenCalls();
  bool readAfterCall(bool atEnd);
  bool isTool(std::string_view name) const;
  std::optional<CallStart> findCallStart(std::string_view json) const;
  std::optional<std::vector<ToolCall>> parseCalls(std::string_view json) const;
  bool scanJson();
  void beginCall(size_t markSize);
  void beginJson(size_t at, int openBrackets);
  void emitCall(std::string name);
  void emit(Part::Kind kind, std::string text);
  void emitTrimmed(Part::Kind kind, std::string text);

  const ReasoningFormat *reasoning;
  const ToolCallFormat *format; ///< Null: no calls are looked for.
  std::vector<std::string> tools;
  State state;
  std::string held;     ///< Has come, but is no part yet.
  std::string space;    ///< Of a content or of reasoning, if it goes on.
  bool trimmed = false; ///< The content has begun with something else than space.
  size_t markSize = 0;  ///< Of the call in `held`, what is before its JSON.
  size_t scanned = 0;   ///< Of the call in `held`.
  int depth = 0;        ///< Of the JSON there.
  bool inString = false, escaped = false;
  bool inArray = false; ///< The call is an element of one.
  size_t calls = 0;
  std::vector<Part> parts;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_ANSWERFORMAT_H
