#include "frontend/support/InputError.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace mica {

static std::string escaped(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  llvm::printEscapedString(text, stream);
  return result;
}

/// Replaces what would break the line or the terminal; UTF-8 passes, for paths are shown as they
/// are.
static std::string onOneLine(llvm::StringRef text) {
  std::string result = text.str();
  for (char &c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return result;
}

llvm::Error inputError(llvm::StringRef file, const llvm::Twine &what, const llvm::Twine &remedy) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 onOneLine((file + ": " + what + ", " + remedy).str()));
}

std::string inQuotes(llvm::StringRef text) {
  constexpr size_t limit = 120;
  if (text.size() <= limit)
    return "\"" + escaped(text) + "\"";
  return "\"" + escaped(text.take_front(limit)) + "...\"";
}

} // namespace mica
