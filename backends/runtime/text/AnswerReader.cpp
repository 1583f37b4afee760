#include "backends/runtime/text/AnswerReader.h"
#include "backends/runtime/support/NestedJson.h"
#include "backends/runtime/text/StopSequences.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace mica::rt {

using Json = nlohmann::ordered_json;

constexpr std::string_view whitespace = " \t\r\n";

AnswerReader::AnswerReader(const AnswerFormat &format, std::vector<std::string> tools,
                           bool startsInReasoning)
    : reasoning(format.reasoning), format(tools.empty() ? nullptr : format.calls),
      tools(std::move(tools)),
      state(startsInReasoning && reasoning ? State::Reasoning : State::Start) {}

std::vector<AnswerReader::Part> AnswerReader::push(std::string_view text) {
  held += text;
  while (advance(/*atEnd=*/false)) {
  }
  return std::exchange(parts, {});
}

std::vector<AnswerReader::Part> AnswerReader::finish() {
  while (advance(/*atEnd=*/true)) {
  }
  // White space at the end of an answer that is only text is part of it.
  if (state == State::Content && calls == 0)
    emit(Part::Kind::Content, std::exchange(space, {}));
  return std::exchange(parts, {});
}

/// Parses more of `held`. Returns whether there may be more to parse.
bool AnswerReader::advance(bool atEnd) {
  switch (state) {
  case State::Start:
    return readStart(atEnd);
  case State::Content:
    return readContent(atEnd);
  case State::Reasoning:
    return readReasoning(atEnd);
  case State::Call:
    return readCall(atEnd);
  case State::Arguments:
    return readArguments();
  case State::AfterArguments:
    return readAfterArguments();
  case State::BetweenCalls:
    return readBetweenCalls();
  case State::AfterCall:
    return readAfterCall(atEnd);
  }
  return false;
}

/// Whether `text` begins with `mark`, or is a prefix of it.
static bool mayBegin(std::string_view text, std::string_view mark) {
  return !mark.empty() && text.substr(0, mark.size()) == mark.substr(0, text.size());
}

/// At the start, before anything but white space: reasoning, a call without a marker, or content.
bool AnswerReader::readStart(bool atEnd) {
  size_t begin = held.find_first_not_of(whitespace);
  bool mayBeMarked = reasoning || (format && format->bare);
  if (mayBeMarked && begin == held.npos && !atEnd)
    return false;
  std::string_view rest =
      begin == held.npos ? std::string_view() : std::string_view(held).substr(begin);
  if (reasoning && !rest.empty() && mayBegin(rest, reasoning->begin)) {
    if (rest.size() >= reasoning->begin.size()) {
      held.erase(0, begin + reasoning->begin.size());
      state = State::Reasoning;
      return true;
    }
    if (!atEnd)
      return false;
  }
  if (format && format->bare && rest.starts_with('{')) {
    held.erase(0, begin);
    beginCall(/*markSize=*/0);
    return true;
  }
  state = State::Content;
  trimmed = true; // Leading white space of the content is kept.
  return true;
}

bool AnswerReader::readContent(bool atEnd) {
  if (held.empty())
    return false;
  if (!format) {
    emitTrimmed(Part::Kind::Content, std::exchange(held, {}));
    return false;
  }
  size_t mark = held.find(format->begin);
  size_t plain = mark != held.npos ? mark
                 : atEnd           ? held.size()
                                   : held.size() - begunAtEnd(held, format->begin);
  emitTrimmed(Part::Kind::Content, held.substr(0, plain));
  held.erase(0, plain);
  if (mark == held.npos)
    return false;
  beginCall(format->begin.size());
  return true;
}

bool AnswerReader::readReasoning(bool atEnd) {
  size_t mark = held.find(reasoning->end);
  size_t plain = mark != held.npos ? mark
                 : atEnd           ? held.size()
                                   : held.size() - begunAtEnd(held, reasoning->end);
  emitTrimmed(Part::Kind::Reasoning, held.substr(0, plain));
  held.erase(0, plain);
  if (mark == std::string::npos)
    return false;
  held.erase(0, reasoning->end.size());
  space.clear();
  trimmed = false;
  state = State::Content;
  if (format && format->bare)
    state = State::AfterCall;
  return true;
}

void AnswerReader::beginCall(size_t size) {
  state = State::Call;
  markSize = size;
  beginJson(size, /*openBrackets=*/0);
}

/// The position of scanJson in `held`, and the number of open brackets there.
void AnswerReader::beginJson(size_t at, int openBrackets) {
  scanned = at;
  depth = openBrackets;
  inString = escaped = false;
}

void AnswerReader::emitCall(std::string name) {
  parts.push_back({.kind = Part::Kind::Call, .text = std::move(name)});
  ++calls;
  space.clear();
}

/// Scans to the end of the JSON in `held`. Returns whether it is complete.
bool AnswerReader::scanJson() {
  while (scanned < held.size()) {
    char c = held[scanned++];
    if (inString) {
      inString = escaped || c != '"';
      escaped = !escaped && c == '\\';
      continue;
    }
    if (c == '"')
      inString = true;
    else if (c == '{' || c == '[')
      ++depth;
    else if ((c == '}' || c == ']') && --depth == 0)
      return true;
  }
  return false;
}

bool AnswerReader::readCall(bool atEnd) {
  size_t begin = held.find_first_not_of(whitespace, markSize);
  if (begin == held.npos && !atEnd)
    return false;
  bool isJson = begin != held.npos && (held[begin] == '{' || held[begin] == '[');
  if (isJson) {
    if (auto start = findCallStart(std::string_view(held).substr(begin))) {
      emitCall(std::move(start->name));
      held.erase(0, begin + start->arguments);
      inArray |= start->inArray;
      beginJson(0, /*openBrackets=*/0);
      state = State::Arguments;
      return true;
    }
    scanned = std::max(scanned, begin);
    if (!scanJson()) {
      if (!atEnd)
        return false;
      scanned = held.size();
    }
    auto found = parseCalls(std::string_view(held).substr(begin, scanned - begin));
    if (found) {
      for (ToolCall &call : *found) {
        emitCall(std::move(call.name));
        emit(Part::Kind::Arguments, std::move(call.arguments));
      }
      held.erase(0, scanned);
      state = inArray ? State::BetweenCalls : State::AfterCall;
      return true;
    }
  } else {
    // A marker alone is text.
    scanned = std::max<size_t>(markSize, 1);
  }
  scanned = std::min(scanned, held.size());
  inArray = false;
  state = State::Content;
  emitTrimmed(Part::Kind::Content, held.substr(0, scanned));
  held.erase(0, scanned);
  return true;
}

bool AnswerReader::readArguments() {
  bool whole = scanJson();
  emit(Part::Kind::Arguments, held.substr(0, scanned));
  held.erase(0, scanned);
  scanned = 0;
  if (whole)
    state = State::AfterArguments;
  return whole;
}

/// Skips the rest of a call's object. If the model omits the end of it, the call has ended.
bool AnswerReader::readAfterArguments() {
  size_t begin = held.find_first_not_of(whitespace);
  if (begin == held.npos)
    return false;
  if (held[begin] == ',' || held[begin] == '}') {
    beginJson(begin, /*openBrackets=*/1);
    if (!scanJson())
      return false;
    held.erase(0, scanned);
  }
  state = inArray ? State::BetweenCalls : State::AfterCall;
  return true;
}

bool AnswerReader::readBetweenCalls() {
  size_t begin = held.find_first_not_of(whitespace);
  if (begin == held.npos)
    return false;
  if (held[begin] == ',') {
    held.erase(0, begin + 1);
    trimmed = false;
    beginCall(/*markSize=*/0);
    return true;
  }
  if (held[begin] == ']')
    held.erase(0, begin + 1);
  inArray = false;
  state = State::AfterCall;
  return true;
}

/// After a call, or after reasoning that may be followed by a call without a marker.
bool AnswerReader::readAfterCall(bool atEnd) {
  size_t begin = held.find_first_not_of(calls > 0 && format->end.empty() ? " \t\r\n;" : whitespace);
  if (begin == held.npos) {
    held.clear();
    return false;
  }
  held.erase(0, begin);
  if (calls > 0 && mayBegin(held, format->end)) {
    if (held.size() >= format->end.size()) {
      held.erase(0, format->end.size());
      trimmed = false;
      return true;
    }
    if (!atEnd)
      return false;
  }
  if (format->bare && held.front() == '{') {
    beginCall(/*markSize=*/0);
    return true;
  }
  trimmed = false;
  state = State::Content;
  return true;
}

bool AnswerReader::isTool(std::string_view name) const {
  return std::find(tools.begin(), tools.end(), name) != tools.end();
}

/// The beginning of a call up to its arguments. Absent: it is not a call, it is incomplete,
/// or the model writes it in another order or with escapes, which parseCalls handles when it is
/// complete.
std::optional<AnswerReader::CallStart> AnswerReader::findCallStart(std::string_view text) const {
  // Searched again with each piece.
  constexpr size_t maxBytes = 1024;
  text = text.substr(0, maxBytes);
  size_t at = 0;
  auto skip = [&](char expected) {
    at = std::min(text.find_first_not_of(whitespace, at), text.size());
    bool there = at < text.size() && text[at] == expected;
    at += there;
    return there;
  };
  auto string = [&]() -> std::optional<std::string_view> {
    if (!skip('"'))
      return std::nullopt;
    size_t begin = at, end = text.find_first_of("\"\\", begin);
    if (end == text.npos || text[end] != '"')
      return std::nullopt;
    at = end + 1;
    return text.substr(begin, end - begin);
  };
  bool array = skip('[');
  if (!skip('{'))
    return std::nullopt;
  std::optional<std::string_view> name;
  for (;;) {
    std::optional<std::string_view> key = string();
    if (!key || !skip(':'))
      return std::nullopt;
    if (*key == format->argumentsKey) {
      if (!name || !skip('{'))
        return std::nullopt;
      return CallStart{std::string(*name), at - 1, array};
    }
    std::optional<std::string_view> value = string();
    if (!value || !skip(','))
      return std::nullopt;
    if (*key == "name" && !name && isTool(*value))
      name = value;
    else if (*key != "id" && *key != "type")
      return std::nullopt;
  }
}

/// The calls in an object or array; absent: there are none.
std::optional<std::vector<ToolCall>> AnswerReader::parseCalls(std::string_view text) const {
  std::string problem;
  Json json = parseNested(text, problem);
  if (json.is_object())
    json = Json::array({std::move(json)});
  if (!json.is_array() || json.empty())
    return std::nullopt;
  std::vector<ToolCall> found;
  const std::string key(format->argumentsKey);
  for (const Json &each : json) {
    if (!each.is_object() || !each.contains("name") || !each["name"].is_string() ||
        !each.contains(key) || !each[key].is_object())
      return std::nullopt;
    for (const auto &[other, value] : each.items())
      if (other != "name" && other != key && other != "id" && other != "type")
        return std::nullopt;
    auto name = each["name"].get<std::string>();
    if (!isTool(name))
      return std::nullopt;
    found.push_back({std::move(name), each[key].dump()});
  }
  return found;
}

void AnswerReader::emit(Part::Kind kind, std::string text) {
  if (text.empty())
    return;
  if (!parts.empty() && parts.back().kind == kind)
    parts.back().text += text;
  else
    parts.push_back({.kind = kind, .text = std::move(text)});
}

/// Removes white space between reasoning, content and calls: white space at the end of `text` is
/// held until more text of the same kind follows.
void AnswerReader::emitTrimmed(Part::Kind kind, std::string text) {
  if (!trimmed)
    text.erase(0, std::min(text.find_first_not_of(whitespace), text.size()));
  if (text.empty())
    return;
  trimmed = true;
  if (kind == Part::Kind::Reasoning || format) {
    size_t end = text.find_last_not_of(whitespace) + 1;
    std::string after = text.substr(end);
    text.resize(end);
    if (text.empty()) {
      space += after;
      return;
    }
    text = std::exchange(space, std::move(after)) + text;
  }
  emit(kind, std::move(text));
}

} // namespace mica::rt
