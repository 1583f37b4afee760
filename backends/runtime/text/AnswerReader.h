// Splits the answers of a model into parts: reasoning, content and tool calls.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_ANSWERREADER_H
#define MICA_BACKENDS_RUNTIME_TEXT_ANSWERREADER_H

#include "backends/runtime/text/AnswerFormat.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// Splits an answer into parts, independently of how its text is divided into pieces.
///
/// A call begins as soon as the function's name and the beginning of its arguments are complete, if
/// the model writes them in this order. Its arguments are then forwarded verbatim: when invalid
/// JSON is detected, it is too late to treat them as content.
class AnswerReader {
public:
  struct Part {
    enum class Kind {
      Content,
      Reasoning,
      Call,      ///< The beginning of a call; the text is the name of the function.
      Arguments, ///< A piece of that call's arguments.
    };
    Kind kind = Kind::Content;
    std::string text; ///< The next piece of the part.
  };

  /// `tools` are the names of the functions that can be called; if empty, calls are not parsed.
  /// `startsInReasoning`: the prompt ends with the beginning of reasoning.
  AnswerReader(const AnswerFormat &format, std::vector<std::string> tools, bool startsInReasoning);

  std::vector<Part> push(std::string_view text);
  /// Ends the answer. An incomplete call becomes content.
  std::vector<Part> finish();
  /// Whether the arguments of a call have begun but not ended.
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
  const ToolCallFormat *format; ///< Null: calls are not parsed.
  std::vector<std::string> tools;
  State state;
  std::string held;     ///< Text that does not belong to a part yet.
  std::string space;    ///< Trailing space, emitted only if content or reasoning continues.
  bool trimmed = false; ///< Leading space of the content has been removed.
  size_t markSize = 0;  ///< The size of the marker before the JSON of the call in `held`.
  size_t scanned = 0;   ///< How much of the call in `held` has been scanned.
  int depth = 0;        ///< The nesting depth of the JSON there.
  bool inString = false, escaped = false;
  bool inArray = false; ///< The call is an element of one.
  size_t calls = 0;
  std::vector<Part> parts;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_ANSWERREADER_H
