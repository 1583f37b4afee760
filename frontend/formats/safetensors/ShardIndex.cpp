#include "frontend/formats/safetensors/ShardIndex.h"

#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"
#include "frontend/support/MappedFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace mica {

constexpr JsonLimits indexLimits = {64u << 20, 2u << 20, 8, hints::fetch};
constexpr size_t maxShards = 4096;

static bool isPlainName(llvm::StringRef name, llvm::StringRef extension) {
  return name.ends_with(extension) && !name.starts_with(".") &&
         name.find_first_of(llvm::StringRef("/\\\0", 3)) == llvm::StringRef::npos;
}

/// The distinct names of `map`, sorted, so that the order in the file has no effect.
static llvm::Expected<std::vector<std::string>>
collectFiles(const llvm::json::Object &map, llvm::StringRef path, llvm::StringRef extension) {
  std::vector<std::string> files;
  for (const auto &[tensor, value] : map) {
    auto file = value.getAsString();
    if (!file || !isPlainName(*file, extension))
      return inputError(path,
                        "places tensor " + inQuotes(tensor) + " in " +
                            (file ? inQuotes(*file) : shown(value)) +
                            ", which is not the plain name of a " + extension + " file",
                        hints::correct);
    files.push_back(file->str());
  }
  llvm::sort(files);
  files.erase(llvm::unique(files), files.end());
  if (files.size() > maxShards)
    return inputError(path,
                      "names " + llvm::Twine(files.size()) + " shards, at most " +
                          llvm::Twine(maxShards) + " are supported",
                      "merge the shards into fewer files");
  return files;
}

llvm::Expected<std::vector<std::string>> shardIndexFrom(llvm::StringRef text, llvm::StringRef path,
                                                        llvm::StringRef extension) {
  auto root = parseJson(text, path, indexLimits);
  if (!root)
    return root.takeError();
  const llvm::json::Object *object = root->getAsObject();
  const llvm::json::Object *map = object ? object->getObject("weight_map") : nullptr;
  if (!map || map->empty())
    return inputError(path, "has no weight_map with tensors in it", hints::fetch);
  return collectFiles(*map, path, extension);
}

llvm::Expected<std::vector<std::string>> readShardIndex(llvm::StringRef path,
                                                        llvm::StringRef extension) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  return shardIndexFrom(llvm::toStringRef(file->bytes()), path, extension);
}

} // namespace mica
