#include "frontend/weights/ShardIndex.h"

#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"
#include "frontend/support/MappedFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace mica {

constexpr JsonLimits indexLimits = {64u << 20, 2u << 20, 8, remedy::fetch};
constexpr size_t maxShards = 4096;

static bool isPlainName(llvm::StringRef name, llvm::StringRef extension) {
  return name.ends_with(extension) && !name.starts_with(".") &&
         name.find_first_of(llvm::StringRef("/\\\0", 3)) == llvm::StringRef::npos;
}

/// Fills `index.files` with the distinct names of `map`, sorted, so that nothing depends on the
/// order in the file.
static llvm::Error collectFiles(const llvm::json::Object &map, llvm::StringRef path,
                                llvm::StringRef extension, ShardIndex &index) {
  for (const auto &[tensor, value] : map) {
    auto file = value.getAsString();
    if (!file || !isPlainName(*file, extension))
      return inputError(path,
                        "places tensor " + inQuotes(tensor) + " in " +
                            (file ? inQuotes(*file) : shown(value)) +
                            ", which is not the plain name of a " + extension + " file",
                        remedy::correct);
    index.files.push_back(file->str());
  }
  llvm::sort(index.files);
  index.files.erase(llvm::unique(index.files), index.files.end());
  if (index.files.size() > maxShards)
    return inputError(path,
                      "names " + llvm::Twine(index.files.size()) + " shards, at most " +
                          llvm::Twine(maxShards) + " are read",
                      "join the shards to fewer files");
  return llvm::Error::success();
}

llvm::Expected<ShardIndex> shardIndexFrom(llvm::StringRef text, llvm::StringRef path,
                                          llvm::StringRef extension) {
  auto root = parseJson(text, path, indexLimits);
  if (!root)
    return root.takeError();
  const llvm::json::Object *object = root->getAsObject();
  const llvm::json::Object *map = object ? object->getObject("weight_map") : nullptr;
  if (!map || map->empty())
    return inputError(path, "has no weight_map with tensors in it", remedy::fetch);
  ShardIndex index;
  if (llvm::Error error = collectFiles(*map, path, extension, index))
    return std::move(error);
  for (const auto &[tensor, value] : *map)
    index.tensors[llvm::StringRef(tensor)] =
        llvm::lower_bound(index.files, *value.getAsString()) - index.files.begin();
  return index;
}

llvm::Expected<ShardIndex> readShardIndex(llvm::StringRef path, llvm::StringRef extension) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  return shardIndexFrom(llvm::toStringRef(file->bytes()), path, extension);
}

} // namespace mica
