//===- StackedExperts.cpp - tensors with all experts of a layer -----------===//

#include "ir/Mica/StackedExperts.h"

#include "llvm/ADT/StringExtras.h"

namespace mica {

std::string stackedName(llvm::StringRef expert) {
  constexpr llvm::StringLiteral kBefore = ".experts.";
  size_t place = expert.find(kBefore);
  if (place == llvm::StringRef::npos)
    return expert.str();
  auto [before, rest] = std::pair(expert.take_front(place + kBefore.size()),
                                  expert.drop_front(place + kBefore.size()));
  llvm::StringRef after = rest.drop_while(llvm::isDigit);
  return after.size() == rest.size() ? expert.str() : (before + "*" + after).str();
}

} // namespace mica
