#include "frontend/formats/checkpoint/WeightFiles.h"

#include "frontend/formats/checkpoint/WeightForms.h"
#include "frontend/formats/safetensors/Safetensors.h"
#include "frontend/formats/safetensors/ShardIndex.h"
#include "frontend/formats/torch/TorchFile.h"
#include "frontend/support/InputError.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <cstring>

namespace mica {

/// A format of a folder's weights, and its reader.
struct FolderForm {
  WeightForm names;
  decltype(&readSafetensorsHeader) readHeader;
};
constexpr FolderForm forms[] = {{kWeightForms[0], readSafetensorsHeader},
                                {kWeightForms[1], readTorchFile}};

static std::string pathIn(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

/// Explains a folder without safetensors files, based on its other files.
static llvm::Error noWeights(llvm::StringRef folder) {
  if (!llvm::sys::fs::exists(folder))
    return inputError(folder, "does not exist", "pass a model folder");
  if (!llvm::sys::fs::is_directory(folder))
    return inputError(folder, "is not a folder", "pass a model folder");
  return inputError(folder,
                    "holds neither " + forms[0].names.single + " nor " + forms[0].names.index +
                        " nor " + forms[1].names.single,
                    "download the weights");
}

bool WeightFiles::present(llvm::StringRef folder) {
  return llvm::any_of(forms, [&](const FolderForm &form) {
    return llvm::sys::fs::exists(pathIn(folder, form.names.single)) ||
           llvm::sys::fs::exists(pathIn(folder, form.names.index));
  });
}

llvm::Expected<WeightFiles> WeightFiles::open(llvm::StringRef folder) {
  WeightFiles weights;
  weights.folderPath = folder.str();
  for (const FolderForm &form : forms) {
    std::string single = pathIn(folder, form.names.single),
                indexPath = pathIn(folder, form.names.index);
    bool isSingle = llvm::sys::fs::exists(single);
    if (!isSingle && !llvm::sys::fs::exists(indexPath))
      continue;
    if (llvm::Error error =
            isSingle ? weights.add(single, form.readHeader)
                     : weights.addShards(indexPath, llvm::sys::path::extension(form.names.single),
                                         form.readHeader))
      return std::move(error);
    weights.joinScales();
    return weights;
  }
  return noWeights(folder);
}

llvm::Error WeightFiles::addShards(llvm::StringRef indexPath, llvm::StringRef extension,
                                   HeaderReader *readHeader) {
  auto shards = readShardIndex(indexPath, extension);
  if (!shards)
    return shards.takeError();
  for (const std::string &file : *shards)
    if (llvm::Error error = add(pathIn(folderPath, file), readHeader))
      return error;
  return llvm::Error::success();
}

/// NAME_blocks with bytes [..., 16] and NAME_scales with bytes [...]: 32 MXFP4 numbers per block,
/// along the last axis, with one scale. Such a pair is one tensor.
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
                      "download the weights again");
  }
  if (tensor.type == StoredType::F64) {
    tensor.isF64 = true;
    tensor.type = StoredType::F32;
  }
  infos.push_back(std::move(tensor));
  return llvm::Error::success();
}

static float floatAt(const uint8_t *bytes) {
  float value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Whether `tensor`, whose bytes are `stored`, consists of finite values -exp(x); x is -infinity
/// for 0.
static bool isNegatedExp(const TensorInfo &tensor, llvm::ArrayRef<uint8_t> stored) {
  if (tensor.type != StoredType::F32 || tensor.blocks)
    return false;
  for (size_t at = 0; at < stored.size(); at += sizeof(float))
    if (float value = floatAt(&stored[at]); !(value <= 0) || std::isinf(value))
      return false;
  return true;
}

llvm::Expected<WeightFiles> WeightFiles::of(llvm::StringRef source, std::vector<MappedFile> files,
                                            std::vector<TensorInfo> tensors) {
  WeightFiles weights;
  weights.folderPath = source.str();
  weights.files = std::move(files);
  for (TensorInfo &tensor : tensors) {
    std::string path = weights.pathOf(tensor).str();
    if (tensor.isNegatedExp && !isNegatedExp(tensor, weights.stored(tensor)))
      return inputError(path,
                        "tensor " + inQuotes(tensor.name) +
                            " does not consist of finite F32 values of at most 0, which determine "
                            "the decay of states",
                        "download it again");
    if (llvm::Error error = weights.addTensor(std::move(tensor), path))
      return std::move(error);
  }
  return weights;
}

const TensorInfo *WeightFiles::find(llvm::StringRef name) const {
  auto entry = byName.find(name);
  return entry == byName.end() ? nullptr : &infos[entry->second];
}

/// Copies the elements of `tensor` from `stored`, in row-major order and its type.
static std::vector<uint8_t> plainCopy(const TensorInfo &tensor, llvm::ArrayRef<uint8_t> stored) {
  size_t rank = tensor.shape.size(), made = bitsOf(tensor.type) / 8,
         width = tensor.isF64 ? sizeof(double) : made;
  llvm::SmallVector<int64_t, 4> strides = tensor.strides, index(rank, 0);
  int64_t elements = 1;
  for (size_t axis = rank; axis-- > 0; elements *= tensor.shape[axis])
    if (tensor.strides.empty())
      strides.insert(strides.begin(), elements);
  std::vector<uint8_t> copy(static_cast<size_t>(elements) * made);
  const uint8_t *from = stored.data();
  for (uint8_t *to = copy.data(); elements-- > 0; to += made) {
    if (tensor.isF64) {
      double value;
      std::memcpy(&value, from, sizeof value);
      auto rounded = static_cast<float>(value);
      std::memcpy(to, &rounded, sizeof rounded);
    } else {
      std::memcpy(to, from, width);
    }
    // Advances to the next element in the order of the copy.
    for (size_t axis = rank; axis-- > 0;) {
      from += strides[axis] * static_cast<int64_t>(width);
      if (++index[axis] < tensor.shape[axis])
        break;
      from -= strides[axis] * static_cast<int64_t>(width) * tensor.shape[axis];
      index[axis] = 0;
    }
  }
  for (size_t at = 0; tensor.isNegatedExp && at < copy.size(); at += sizeof(float)) {
    float value = std::log(-floatAt(&copy[at]));
    std::memcpy(&copy[at], &value, sizeof value);
  }
  return copy;
}

/// Copies the rows of `tensor` from `stored`, the first half of each head before the second.
static std::vector<uint8_t> halvesCopy(const TensorInfo &tensor, llvm::ArrayRef<uint8_t> stored) {
  int64_t rows = tensor.shape.front(), dim = tensor.interleavedHeadDim,
          rowSize = static_cast<int64_t>(stored.size()) / rows;
  std::vector<uint8_t> copy;
  copy.reserve(stored.size());
  for (int64_t row = 0; row < rows; ++row) {
    int64_t element = row % dim, inHalf = element % (dim / 2), half = element / (dim / 2);
    llvm::append_range(copy, stored.slice((row - element + 2 * inHalf + half) * rowSize, rowSize));
  }
  return copy;
}

llvm::ArrayRef<uint8_t> WeightFiles::stored(const TensorInfo &tensor) const {
  return files[tensor.file].bytes().slice(tensor.offset, tensor.size);
}

llvm::ArrayRef<uint8_t> WeightFiles::bytes(const TensorInfo &tensor) const {
  if (!tensor.isF64 && !tensor.isNegatedExp && !tensor.interleavedHeadDim && tensor.strides.empty())
    return stored(tensor);
  auto [copy, isNew] = copies.try_emplace(tensor.name);
  if (isNew)
    copy->second = tensor.interleavedHeadDim ? halvesCopy(tensor, stored(tensor))
                                             : plainCopy(tensor, stored(tensor));
  return copy->second;
}

void WeightFiles::release(const TensorInfo &tensor) const {
  copies.erase(tensor.name);
  files[tensor.file].release(stored(tensor));
}

} // namespace mica
