#include "frontend/support/InputError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace mica {

static std::string escaped(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  llvm::printEscapedString(text, stream);
  return result;
}

/// Replaces characters that would break the line or the terminal; UTF-8 is kept, because paths are
/// shown unchanged.
static std::string onOneLine(llvm::StringRef text) {
  std::string result = text.str();
  for (char &c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return result;
}

llvm::Error inputError(llvm::StringRef file, const llvm::Twine &what, const llvm::Twine &hint) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 onOneLine((file + ": " + what + "; " + hint).str()));
}

std::string inQuotes(llvm::StringRef text) {
  constexpr size_t limit = 120;
  if (text.size() <= limit)
    return "\"" + escaped(text) + "\"";
  return "\"" + escaped(text.take_front(limit)) + "...\"";
}

static std::string joinWith(llvm::StringRef word, llvm::ArrayRef<llvm::StringRef> names) {
  std::string text = llvm::join(names.drop_back(), ", ");
  return text + (text.empty() ? "" : (" " + word + " ").str()) + names.back().str();
}

std::string joinWithAnd(llvm::ArrayRef<llvm::StringRef> names) { return joinWith("and", names); }

std::string joinWithOr(llvm::ArrayRef<llvm::StringRef> names) { return joinWith("or", names); }

llvm::Error renameQuoted(llvm::Error error,
                         llvm::function_ref<std::string(llvm::StringRef)> rename) {
  if (!error)
    return llvm::Error::success();
  std::string message = llvm::toString(std::move(error)), result;
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(message).split(parts, '"');
  for (auto [index, part] : llvm::enumerate(parts)) {
    bool isQuoted = index % 2 == 1 && index + 1 < parts.size();
    result += (index > 0 ? "\"" : "") + (isQuoted ? rename(part) : part.str());
  }
  return llvm::createStringError(result);
}

} // namespace mica
