// Detects how a chat template marks the parts of answers.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_DETECTANSWERFORMAT_H
#define MICA_BACKENDS_RUNTIME_TEXT_DETECTANSWERFORMAT_H

#include "backends/runtime/text/AnswerFormat.h"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace mica::rt {

/// Renders a conversation with `tools`, both lists, followed by the beginning of an answer if
/// `answer`; absent if the template fails.
using RenderConversation = std::function<std::optional<std::string>(
    const nlohmann::ordered_json &messages, const nlohmann::ordered_json &tools, bool answer)>;

/// Detects the answer format of a template. The format of calls is the first that parses a call in
/// the template's own rendering of a conversation with one.
AnswerFormat detectAnswerFormat(std::string_view source, const RenderConversation &render);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_TEXT_DETECTANSWERFORMAT_H
