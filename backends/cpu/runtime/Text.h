// The program's tokenizer, if it has one.
#pragma once

#include "backends/cpu/program/ProgramFile.h"
#include "backends/cpu/runtime/Generate.h"

#if MICA_HAS_TOKENIZER
#include "backends/cpu/runtime/tokenizer/Tokenizer.h"
#endif

#include <optional>
#include <string>
#include <string_view>

namespace mica::rt {

/// Reads one sequence's ids as text while they come.
class TextStream {
public:
  virtual ~TextStream() = default;
  /// Text that has become certain with `token`.
  virtual std::string push(int32_t token) = 0;
  virtual std::string finish() = 0;
};

class Text {
public:
  virtual ~Text() = default;
  /// Null where the program has no tokenizer.
  static Result<std::unique_ptr<Text>> load(const program::ProgramFile &file);

  /// Ids of a prompt, with the special tokens that the model expects around it.
  virtual Tokens encode(std::string_view text) const = 0;
  /// A stream for what follows `prompt`.
  virtual std::unique_ptr<TextStream> stream(const Tokens &prompt) const = 0;
};

} // namespace mica::rt
