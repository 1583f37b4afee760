// The file of `-f FILE --batch B`: one request per line, as JSON.
#pragma once

#include "backends/cpu/runtime/Arguments.h"
#include "backends/cpu/runtime/Text.h"

#include <optional>
#include <string>
#include <vector>

namespace mica::rt {

struct BatchRequest {
  int64_t line = 0; ///< in the file, from 1
  std::string id;   ///< as JSON; empty: none was given
  Tokens prompt;
  int64_t count = 1; ///< texts that are wanted
  std::optional<uint64_t> seed;
  std::optional<int64_t> maxTokens;
  Tokens endTokens = {}; ///< end a text beside the model's own: the chat template's
};

/// The requests in `text`; lines of white space are passed over. Of the arguments those count that
/// say how conversations are written. Errors name the line: what is no request, has a key that is
/// not known, or a prompt that the model cannot read. `tokenizer` may be null.
Result<std::vector<BatchRequest>> parseBatchRequests(std::string_view text, const Text *tokenizer,
                                                     const Manifest &manifest,
                                                     const RunArguments &arguments);

} // namespace mica::rt
