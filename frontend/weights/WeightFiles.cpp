#include "frontend/weights/WeightFiles.h"

#include "frontend/support/InputError.h"
#include "frontend/weights/Safetensors.h"
#include "frontend/weights/ShardIndex.h"
#include "frontend/weights/TorchFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

namespace mica {

/// What a folder's weights may be, the first that is there: one file, or an index of shards.
struct FolderForm {
  llvm::StringLiteral single, index;
  decltype(&readSafetensorsHeader) readHeader;
};
constexpr FolderForm forms[] = {
    {"model.safetensors", "model.safetensors.index.json", readSafetensorsHeader},
    {"pytorch_model.bin", "pytorch_model.bin.index.json", readTorchFile}};

static std::string pathIn(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

/// Why a folder without safetensors files has none, as far as its other files tell.
static llvm::Error noWeights(llvm::StringRef folder) {
  if (!llvm::sys::fs::exists(folder))
    return inputError(folder, "does not exist", "name a model folder");
  if (!llvm::sys::fs::is_directory(folder))
    return inputError(folder, "is not a folder", "name a model folder");
  return inputError(folder,
                    "holds neither " + forms[0].single + " nor " + forms[0].index + " nor " +
                        forms[1].single,
                    "fetch the weights");
}

bool WeightFiles::present(llvm::StringRef folder) {
  return llvm::any_of(forms, [&](const FolderForm &form) {
    return llvm::sys::fs::exists(pathIn(folder, form.single)) ||
           llvm::sys::fs::exists(pathIn(folder, form.index));
  });
}

llvm::Expected<WeightFiles> WeightFiles::open(llvm::StringRef folder) {
  WeightFiles weights;
  weights.folderPath = folder.str();
  for (const FolderForm &form : forms) {
    std::string single = pathIn(folder, form.single), indexPath = pathIn(folder, form.index);
    bool isSingle = llvm::sys::fs::exists(single);
    if (!isSingle && !llvm::sys::fs::exists(indexPath))
      continue;
    if (llvm::Error error =
            isSingle ? weights.add(single, form.readHeader)
                     : weights.addShards(indexPath, llvm::sys::path::extension(form.single),
                                         form.readHeader))
      return std::move(error);
    weights.joinScales();
    return weights;
  }
  return noWeights(folder);
}

llvm::Error WeightFiles::addShards(llvm::StringRef indexPath, llvm::StringRef extension,
                                   HeaderReader *readHeader) {
  auto index = readShardIndex(indexPath, extension);
  if (!index)
    return index.takeError();
  for (const std::string &file : index->files)
    if (llvm::Error error = add(pathIn(folderPath, file), readHeader))
      return error;
  return checkAgainst(*index, indexPath);
}

/// NAME_blocks of bytes [..., 16] beside NAME_scales of bytes [...]: 32 numbers of MXFP4 each,
/// along the last axis, of one scale. Such a pair is one tensor of these numbers.
void WeightFiles::joinScales() {
  constexpr llvm::StringLiteral blocks = "_blocks", scales = "_scales";
  constexpr int64_t numbers = 32, bytes = 16;
  for (TensorInfo &tensor : infos) {
    llvm::StringRef stem = tensor.name;
    if (!stem.consume_back(blocks) || tensor.type != StoredType::U8 || tensor.shape.size() < 2 ||
        tensor.shape.back() != bytes)
      continue;
    auto found = byName.find((stem + scales).str());
    if (found == byName.end() || infos[found->second].type != StoredType::U8 ||
        infos[found->second].shape != llvm::ArrayRef<int64_t>(tensor.shape).drop_back())
      continue;
    int64_t width;
    if (llvm::MulOverflow(*std::prev(tensor.shape.end(), 2), numbers, width))
      continue;
    tensor.scales = found->second;
    tensor.type = StoredType::F32;
    tensor.blocks = &mxfp4Type();
    tensor.shape.pop_back();
    tensor.shape.back() = width;
  }
}

llvm::Error WeightFiles::add(llvm::StringRef path, HeaderReader *readHeader) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  auto header = readHeader(file->bytes(), path);
  if (!header)
    return header.takeError();
  for (TensorInfo &tensor : *header) {
    tensor.file = files.size();
    if (llvm::Error error = addTensor(std::move(tensor), path))
      return error;
  }
  files.push_back(std::move(*file));
  return llvm::Error::success();
}

llvm::Error WeightFiles::addTensor(TensorInfo tensor, llvm::StringRef path) {
  auto [entry, isNew] = byName.try_emplace(tensor.name, infos.size());
  if (!isNew) {
    unsigned other = infos[entry->second].file;
    return inputError(path,
                      "holds tensor " + inQuotes(tensor.name) + ", which " +
                          (other == tensor.file ? path : files[other].path()) + " holds too",
                      "fetch the weights again");
  }
  infos.push_back(std::move(tensor));
  return llvm::Error::success();
}

llvm::Expected<WeightFiles> WeightFiles::of(llvm::StringRef source, std::vector<MappedFile> files,
                                            std::vector<TensorInfo> tensors) {
  WeightFiles weights;
  weights.folderPath = source.str();
  weights.files = std::move(files);
  for (TensorInfo &tensor : tensors) {
    std::string path = weights.pathOf(tensor).str();
    if (llvm::Error error = weights.addTensor(std::move(tensor), path))
      return std::move(error);
  }
  return weights;
}

llvm::Error WeightFiles::checkAgainst(const ShardIndex &index, llvm::StringRef indexPath) const {
  for (const TensorInfo &tensor : infos) {
    auto placed = index.tensors.find(tensor.name);
    if (placed == index.tensors.end() || placed->second != tensor.file)
      return inputError(pathOf(tensor),
                        "holds tensor " + inQuotes(tensor.name) +
                            ", which the index does not place there",
                        "fetch the index and the weights again");
  }
  // Sorted, so that of several the same one is named every time.
  llvm::SmallVector<llvm::StringRef> missing;
  for (const auto &entry : index.tensors)
    if (!find(entry.getKey()))
      missing.push_back(entry.getKey());
  if (missing.empty())
    return llvm::Error::success();
  llvm::StringRef first = *llvm::min_element(missing);
  return inputError(indexPath,
                    "places tensor " + inQuotes(first) + " in " +
                        inQuotes(index.files[index.tensors.lookup(first)]) +
                        ", which does not hold it",
                    "fetch the index and the weights again");
}

const TensorInfo *WeightFiles::find(llvm::StringRef name) const {
  auto entry = byName.find(name);
  return entry == byName.end() ? nullptr : &infos[entry->second];
}

llvm::ArrayRef<uint8_t> WeightFiles::bytes(const TensorInfo &tensor) const {
  return files[tensor.file].bytes().slice(tensor.offset, tensor.size);
}

void WeightFiles::release(const TensorInfo &tensor) const {
  files[tensor.file].release(bytes(tensor));
}

} // namespace mica
