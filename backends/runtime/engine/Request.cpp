#include "backends/runtime/engine/Request.h"
#include "backends/runtime/engine/Session.h"

namespace mica::rt {

static Status checkTokens(const Manifest &manifest, const Tokens &tokens) {
  for (int32_t token : tokens)
    if (Status known = checkToken(manifest, token); !known)
      return known;
  return {};
}

Status checkPrompt(const Manifest &manifest, const Tokens &prompt, bool isWhole) {
  if (prompt.empty())
    return Error{"the prompt has no tokens; pass at least one"};
  auto size = static_cast<int64_t>(prompt.size());
  if (size > manifest.maxSeq)
    return Error{"the prompt has " + std::string(isWhole ? "" : "at least ") +
                 std::to_string(size) + " tokens, " + std::to_string(size - manifest.maxSeq) +
                 " more than the context of " + std::to_string(manifest.maxSeq) +
                 " positions; shorten it" + manifest.largerContextHint()};
  return checkTokens(manifest, prompt);
}

Status checkRequest(const Manifest &manifest, const Request &request) {
  bool noPrompt = request.prompt.empty() && !request.forcedTokens.empty();
  if (Status fits = noPrompt ? Status() : checkPrompt(manifest, request.prompt); !fits)
    return fits;
  if (Status known = checkTokens(manifest, request.forcedTokens); !known)
    return known;
  return checkSettings(request.settings, manifest);
}

} // namespace mica::rt
