#include "frontend/formats/gguf/GgufModel.h"

#include "frontend/support/InputError.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <fstream>

namespace mica {
namespace {

constexpr llvm::StringLiteral ending = ".gguf";
constexpr unsigned maxParts = 4096;

/// PREFIX-00001-of-00003.gguf.
struct PartName {
  llvm::StringRef prefix;
  unsigned number = 0, count = 0; ///< from 1
};

std::optional<PartName> partNameOf(llvm::StringRef path) {
  PartName name;
  if (!path.consume_back(ending))
    return std::nullopt;
  auto [front, count] = path.rsplit("-of-");
  auto [prefix, number] = front.rsplit('-');
  if (number.size() != 5 || count.size() != 5 || number.getAsInteger(10, name.number) ||
      count.getAsInteger(10, name.count))
    return std::nullopt;
  name.prefix = prefix;
  return name;
}

std::string partPath(llvm::StringRef prefix, unsigned number, unsigned count) {
  std::string text;
  llvm::raw_string_ostream(text) << prefix << llvm::format("-%05u-of-%05u", number, count)
                                 << ending;
  return text;
}

/// The value of `key`, which must be a number from `min` to `max`; nothing: absent.
llvm::Expected<std::optional<unsigned>> count(const GgufHeader &header, llvm::StringRef path,
                                              llvm::StringRef key, unsigned min, unsigned max) {
  auto entry = header.metadata.find(key);
  if (entry == header.metadata.end())
    return std::nullopt;
  auto value = entry->second.integer();
  if (!value || *value < min || *value > max)
    return inputError(path,
                      "has " + inQuotes(key) + ": " + entry->second.shown() +
                          ", expected an integer from " + llvm::Twine(min) + " to " +
                          llvm::Twine(max),
                      hints::fetch);
  return static_cast<unsigned>(*value);
}

} // namespace

llvm::Error GgufModel::addPart(unsigned index, unsigned parts) {
  std::string path = partPath(partNameOf(files.front().path())->prefix, index + 1, parts);
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  auto part = readGgufHeader(file->bytes(), path);
  if (!part)
    return part.takeError();
  auto number = count(*part, path, "split.no", 0, maxParts);
  if (!number)
    return number.takeError();
  auto all = count(*part, path, "split.count", 0, maxParts);
  if (!all)
    return all.takeError();
  if (*number != index || *all != parts)
    return inputError(path,
                      "does not say that it is part " + llvm::Twine(index + 1) + " of " +
                          llvm::Twine(parts) + " (split.no, split.count)",
                      "download the parts of one model");
  for (const auto &entry : part->metadata)
    if (!entry.getKey().starts_with("split.") && !entry.getKey().starts_with("general."))
      return inputError(
          path, "has the key " + inQuotes(entry.getKey()) + ", which belongs in the first part",
          "download the parts of one model");
  for (GgufTensor &tensor : part->tensors) {
    tensor.file = index;
    auto [entry, isNew] = byName.try_emplace(tensor.name, header.tensors.size());
    if (!isNew)
      return inputError(path,
                        "holds tensor " + inQuotes(tensor.name) + ", which " +
                            pathOf(header.tensors[entry->second]) + " holds too",
                        "download the parts of one model");
    header.tensors.push_back(std::move(tensor));
  }
  files.push_back(std::move(*file));
  return llvm::Error::success();
}

llvm::Error GgufModel::checkTensorCount() const {
  auto wanted =
      count(header, path(), "split.tensors.count", 0, std::numeric_limits<int32_t>::max());
  if (!wanted)
    return wanted.takeError();
  if (!*wanted || **wanted == header.tensors.size())
    return llvm::Error::success();
  return inputError(path(),
                    "says that the parts hold " + llvm::Twine(**wanted) +
                        " tensors (split.tensors.count), but they hold " +
                        llvm::Twine(header.tensors.size()),
                    "download the parts of one model");
}

llvm::Expected<GgufModel> GgufModel::open(llvm::StringRef path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  auto header = readGgufHeader(file->bytes(), path);
  if (!header)
    return header.takeError();
  auto parts = count(*header, path, "split.count", 0, maxParts);
  if (!parts)
    return parts.takeError();
  auto number = count(*header, path, "split.no", 0, maxParts);
  if (!number)
    return number.takeError();
  GgufModel model;
  model.header = std::move(*header);
  model.files.push_back(std::move(*file));
  for (auto [index, tensor] : llvm::enumerate(model.header.tensors))
    model.byName[tensor.name] = index;
  if (parts->value_or(0) < 2)
    return model;
  auto name = partNameOf(path);
  if (!name || name->count != **parts || name->number != number->value_or(0) + 1)
    return inputError(path,
                      "is part " + llvm::Twine(number->value_or(0) + 1) + " of " +
                          llvm::Twine(**parts) + " by its metadata, but not by its name",
                      "rename the first part to " + partPath("NAME", 1, **parts) +
                          " and the others accordingly");
  if (name->number != 1)
    return inputError(path, "is part " + llvm::Twine(name->number) + " of a model",
                      "pass the first part, " + partPath(name->prefix, 1, **parts));
  for (unsigned index = 1; index < **parts; ++index)
    if (llvm::Error error = model.addPart(index, **parts))
      return std::move(error);
  if (llvm::Error error = model.checkTensorCount())
    return std::move(error);
  return model;
}

const GgufValue *GgufModel::find(llvm::StringRef key) const {
  auto entry = header.metadata.find(key);
  return entry == header.metadata.end() ? nullptr : &entry->second;
}

const GgufTensor *GgufModel::findTensor(llvm::StringRef name) const {
  auto entry = byName.find(name);
  return entry == byName.end() ? nullptr : &header.tensors[entry->second];
}

bool isGguf(llvm::StringRef path) {
  if (!llvm::sys::fs::is_regular_file(path))
    return false;
  if (path.ends_with(ending))
    return true;
  uint8_t head[4] = {};
  std::ifstream(path.str(), std::ios::binary).read(reinterpret_cast<char *>(head), sizeof head);
  return beginsAsGguf(head);
}

std::vector<std::string> ggufFiles(llvm::StringRef path) {
  std::vector<std::string> files = {path.str()};
  auto name = partNameOf(path);
  if (name && name->count <= maxParts)
    for (unsigned number = 1; number <= name->count; ++number)
      if (number != name->number)
        files.push_back(partPath(name->prefix, number, name->count));
  return files;
}

llvm::StringRef ggufName(llvm::StringRef path) {
  llvm::StringRef file = llvm::sys::path::filename(path);
  if (auto part = partNameOf(file); part && !part->prefix.empty())
    return part->prefix;
  file.consume_back(ending);
  return file.empty() ? "model" : file;
}

} // namespace mica
