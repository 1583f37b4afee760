//===- HubName.cpp - OWNER/NAME[:SELECTION] -------------------------------===//

#include "tools/hub/HubName.h"

#include "frontend/support/InputError.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace mica::hub {

/// The hub's rule for OWNER and NAME. `--` would make names of cache folders ambiguous.
static bool isNamePart(StringRef part) {
  auto isWord = [](char c) { return isAlnum(c) || c == '_'; };
  return !part.empty() && part.size() <= 96 && isWord(part.front()) && isWord(part.back()) &&
         all_of(part, [&](char c) { return isWord(c) || c == '-' || c == '.'; }) &&
         !part.contains("--") && !part.contains("..");
}

bool isSafePath(StringRef path) {
  constexpr size_t longest = 1024, longestComponent = 255;
  SmallVector<StringRef> components;
  path.split(components, '/');
  return path.size() <= longest &&
         all_of(components,
                [&](StringRef component) {
                  return !component.empty() && component != "." && component != ".." &&
                         component.size() <= longestComponent;
                }) &&
         none_of(path, [](char c) {
           return c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

Expected<HubName> parseHubName(StringRef text) {
  auto [repository, selection] = text.split(':');
  auto [owner, name] = repository.split('/');
  if (!isNamePart(owner) || !isNamePart(name))
    return inputError(text, "is not the name of a model on the Hugging Face hub",
                      "write OWNER/NAME or OWNER/NAME:FILE");
  if (repository.size() != text.size() && !isSafePath(selection))
    return inputError(text, "does not name a file of " + repository,
                      "write OWNER/NAME:FILE or, for instance, OWNER/NAME:Q4_K_M");
  return HubName{owner.str(), name.str(), selection.str()};
}

bool isHubName(StringRef text) {
  Expected<HubName> name = parseHubName(text);
  if (!name) {
    consumeError(name.takeError());
    return false;
  }
  return !name->selection.empty() ||
         (!StringRef(name->name).ends_with(".gguf") && !StringRef(name->name).ends_with(".mlir"));
}

} // namespace mica::hub
