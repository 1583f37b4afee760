//===- Imatrix.cpp - llama.cpp's statistics of activations ----------------===//

#include "frontend/formats/gguf/Imatrix.h"

#include "frontend/formats/gguf/GgufFile.h"
#include "frontend/support/InputError.h"

#include <cmath>
#include <cstring>

namespace mica {

namespace {

llvm::Error notAnImatrix(llvm::StringRef path, const llvm::Twine &why) {
  return inputError(path, "is not a llama-imatrix file (" + why + ")",
                    "use a file written by llama-imatrix for this model");
}

llvm::Error checkNumbers(llvm::StringRef path, llvm::StringRef name, llvm::ArrayRef<float> values) {
  for (float value : values)
    if (!std::isfinite(value) || value < 0)
      return inputError(path,
                        "has a mean square that is negative or not finite (" + inQuotes(name) + ")",
                        hints::fetch);
  return llvm::Error::success();
}

/// The numbers of an f32 tensor; nothing: another type.
std::optional<std::vector<float>> floatsOf(const GgufTensor &tensor,
                                           llvm::ArrayRef<uint8_t> bytes) {
  if (tensor.type->name != "F32")
    return std::nullopt;
  std::vector<float> values(tensor.size / sizeof(float));
  std::memcpy(values.data(), bytes.data() + tensor.offset, values.size() * sizeof(float));
  return values;
}

llvm::Expected<Imatrix> readGgufImatrix(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef path) {
  llvm::Expected<GgufHeader> header = readGgufHeader(bytes, path);
  if (!header)
    return header.takeError();
  constexpr llvm::StringLiteral sums = ".in_sum2", counts = ".counts";
  llvm::StringMap<const GgufTensor *> tensors;
  for (const GgufTensor &tensor : header->tensors)
    tensors[tensor.name] = &tensor;
  Imatrix imatrix;
  for (const GgufTensor &tensor : header->tensors) {
    llvm::StringRef name = tensor.name;
    if (!name.consume_back(sums))
      continue;
    const GgufTensor *countsTensor = tensors.lookup((name + counts).str());
    if (!countsTensor)
      return notAnImatrix(path, inQuotes(tensor.name) + " has no counts");
    auto values = floatsOf(tensor, bytes), rows = floatsOf(*countsTensor, bytes);
    if (!values || !rows || rows->empty() || values->size() % rows->size() != 0)
      return notAnImatrix(path, inQuotes(tensor.name) + " and its counts do not fit together");
    size_t columns = values->size() / rows->size();
    for (size_t i = 0; i < values->size(); ++i) {
      float count = (*rows)[i / columns];
      (*values)[i] = count > 0 ? (*values)[i] / count : 0;
    }
    if (llvm::Error error = checkNumbers(path, name, *values))
      return std::move(error);
    imatrix[name].meanSquares = std::move(*values);
  }
  if (imatrix.empty())
    return notAnImatrix(path, "it has no tensor whose name ends with " + sums);
  return imatrix;
}

/// Reads numbers and texts from the front of a file.
class Reader {
public:
  explicit Reader(llvm::ArrayRef<uint8_t> bytes) : rest(bytes) {}

  std::optional<int32_t> count() {
    int32_t value;
    if (rest.size() < sizeof value)
      return std::nullopt;
    std::memcpy(&value, rest.data(), sizeof value);
    rest = rest.drop_front(sizeof value);
    return value < 0 ? std::nullopt : std::optional(value);
  }
  std::optional<llvm::ArrayRef<uint8_t>> take(uint64_t size) {
    if (size > rest.size())
      return std::nullopt;
    llvm::ArrayRef<uint8_t> taken = rest.take_front(size);
    rest = rest.drop_front(size);
    return taken;
  }

private:
  llvm::ArrayRef<uint8_t> rest;
};

/// The format is: the number of entries; for each entry the length of its name, the name, the
/// number of accumulated means, the number of sums, the sums. The rest is not needed.
llvm::Expected<Imatrix> readOldImatrix(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef path) {
  Reader reader(bytes);
  std::optional<int32_t> entries = reader.count();
  if (!entries || *entries == 0)
    return notAnImatrix(path, "it has no entries");
  Imatrix imatrix;
  for (int32_t i = 0; i < *entries; ++i) {
    auto cutOff = [&] {
      return notAnImatrix(path, "entry " + llvm::Twine(i) + " of " + llvm::Twine(*entries) +
                                    " is cut off");
    };
    std::optional<int32_t> length = reader.count();
    auto name = length ? reader.take(static_cast<uint64_t>(*length)) : std::nullopt;
    if (!name)
      return cutOff();
    std::optional<int32_t> calls = reader.count(), values = calls ? reader.count() : std::nullopt;
    auto sums = values ? reader.take(static_cast<uint64_t>(*values) * sizeof(float)) : std::nullopt;
    if (!sums)
      return cutOff();
    llvm::StringRef key(reinterpret_cast<const char *>(name->data()), name->size());
    std::vector<float> means(static_cast<size_t>(*values));
    std::memcpy(means.data(), sums->data(), sums->size());
    for (float &mean : means)
      mean = *calls > 0 ? mean / static_cast<float>(*calls) : 0;
    if (llvm::Error error = checkNumbers(path, key, means))
      return std::move(error);
    if (!imatrix.try_emplace(key, ImatrixEntry{std::move(means)}).second)
      return notAnImatrix(path, inQuotes(key) + " occurs twice");
  }
  return imatrix;
}

} // namespace

llvm::Expected<std::vector<float>> ImatrixEntry::matrix(int64_t index, int64_t matrices) const {
  auto all = static_cast<int64_t>(meanSquares.size());
  if (matrices <= 0 || index >= matrices || all % matrices != 0)
    return llvm::createStringError(llvm::Twine(all) + " numbers for " + llvm::Twine(matrices) +
                                   " matrices");
  int64_t columns = all / matrices;
  auto first = meanSquares.begin() + index * columns;
  return std::vector<float>(first, first + columns);
}

llvm::Expected<Imatrix> readImatrix(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef path) {
  return beginsAsGguf(bytes) ? readGgufImatrix(bytes, path) : readOldImatrix(bytes, path);
}

} // namespace mica
