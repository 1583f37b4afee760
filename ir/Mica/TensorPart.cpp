//===- TensorPart.cpp - what a source of a weight names -----------------------===//

#include "ir/Mica/TensorPart.h"

#include "llvm/ADT/ArrayRef.h"

namespace mica {

/// Takes "[TEXT]" from the end of `source`.
static std::optional<llvm::StringRef> takeBrackets(llvm::StringRef &source) {
  size_t open = source.rfind('[');
  if (!source.ends_with("]") || open == llvm::StringRef::npos)
    return std::nullopt;
  llvm::StringRef text = source.substr(open + 1).drop_back();
  source = source.take_front(open);
  return text;
}

/// "first:last of period" with 0 <= first < last <= period.
static bool parseRows(llvm::StringRef text, TensorPart &part) {
  auto [rows, period] = text.split(" of ");
  auto [first, last] = rows.split(':');
  return !first.getAsInteger(10, part.first) && !last.getAsInteger(10, part.last) &&
         !period.getAsInteger(10, part.period) && 0 <= part.first && part.first < part.last &&
         part.last <= part.period;
}

std::optional<TensorPart> parseTensorPart(llvm::StringRef source) {
  TensorPart part;
  llvm::StringRef rest = source;
  part.turned = rest.consume_back("^T");
  std::optional<llvm::StringRef> text = takeBrackets(rest);
  if (text && text->contains(':')) {
    if (!parseRows(*text, part))
      return std::nullopt;
  } else {
    rest = source;
    part.turned = false;
  }
  part.transposed = rest.consume_back("^T");
  if (auto index = takeBrackets(rest)) {
    int64_t entry;
    if (index->getAsInteger(10, entry) || entry < 0)
      return std::nullopt;
    part.entry = entry;
  }
  part.tensor = rest;
  if (rest.empty() || rest.find_first_of("[]^") != llvm::StringRef::npos)
    return std::nullopt;
  return part;
}

std::string TensorPart::text() const {
  std::string result = tensor.str();
  if (entry)
    result += "[" + std::to_string(*entry) + "]";
  if (transposed)
    result += "^T";
  if (period != 0)
    result += "[" + std::to_string(first) + ":" + std::to_string(last) + " of " +
              std::to_string(period) + "]";
  return turned ? result + "^T" : result;
}

llvm::StringRef tensorOf(llvm::StringRef source) {
  return source.take_until([](char c) { return c == '[' || c == '^'; });
}

std::optional<llvm::SmallVector<int64_t>> TensorPart::shapeIn(llvm::ArrayRef<int64_t> shape) const {
  if (entry) {
    if (shape.empty() || *entry >= shape.front())
      return std::nullopt;
    shape = shape.drop_front();
  }
  llvm::SmallVector<int64_t> result(shape);
  if (result.empty() || (transposed && result.size() != 2))
    return std::nullopt;
  if (transposed)
    std::swap(result[0], result[1]);
  if (period == 0)
    return result;
  if (result.front() % period != 0 || (turned && result.size() != 2))
    return std::nullopt;
  result.front() = result.front() / period * (last - first);
  if (turned)
    std::swap(result[0], result[1]);
  return result;
}

llvm::SmallVector<int64_t> TensorPart::shapeAround(llvm::ArrayRef<int64_t> shape,
                                                   int64_t entries) const {
  llvm::SmallVector<int64_t> result(shape);
  if (turned)
    std::swap(result[0], result[1]);
  if (period != 0)
    result.front() = result.front() / (last - first) * period;
  if (transposed)
    std::swap(result[0], result[1]);
  if (entry)
    result.insert(result.begin(), entries);
  return result;
}

} // namespace mica
