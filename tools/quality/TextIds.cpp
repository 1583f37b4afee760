//===- TextIds.cpp - texts as token ids -----------------------------------===//

#include "tools/quality/TextIds.h"

#include "frontend/support/InputError.h"
#include "frontend/support/MappedFile.h"

using namespace llvm;

namespace mica::tool {

Expected<rt::Tokens> idsOfText(StringRef path, const rt::ProgramTokenizer &tokenizer) {
  Expected<MappedFile> file = MappedFile::openNamed(path);
  if (!file)
    return file.takeError();
  rt::Result<rt::Tokens> encoded = tokenizer.encode(
      {reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size()});
  if (!encoded)
    return createStringError(path + ": " + encoded.error().message);
  return *std::move(encoded);
}

Expected<rt::Tokens> idsInFile(StringRef path, int64_t vocab) {
  Expected<MappedFile> file = MappedFile::openNamed(path);
  if (!file)
    return file.takeError();
  StringRef rest(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
  rt::Tokens ids;
  constexpr StringLiteral separators = " \t\r\n,";
  for (rest = rest.ltrim(separators); !rest.empty(); rest = rest.ltrim(separators)) {
    StringRef word = rest.take_until([&](char c) { return separators.contains(c); });
    rest = rest.drop_front(word.size());
    int64_t id;
    if (word.getAsInteger(10, id) || id < 0 || id >= vocab)
      return inputError(path,
                        inQuotes(word) + " is not a token id from 0 to " + Twine(vocab - 1) +
                            " (entry " + Twine(ids.size() + 1) + ")",
                        "use ids of this vocabulary");
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

} // namespace mica::tool
