//===- CheckpointWeights.cpp - weights for the interpreter ----------------===//

#include "tools/support/CheckpointWeights.h"

#include "ir/Interpreter/Npy.h"

#include "llvm/Support/Path.h"

using namespace mlir;

namespace mica {

/// The tensor FOLDER/NAME.npy.
static llvm::Expected<interp::Tensor> readFile(StringRef folder, StringRef name,
                                               MLIRContext *context) {
  if (name.contains('/'))
    return llvm::createStringError("'" + name + "' is not a name of a file");
  SmallString<128> path(folder);
  llvm::sys::path::append(path, name + ".npy");
  llvm::Expected<interp::NpyArray> array = interp::readNpy(path);
  if (!array)
    return array.takeError();
  return interp::toTensor(*array, Float32Type::get(context));
}

/// The bytes of a tensor; blocks are dequantized to f32.
static std::string plainBytes(const WeightFiles &files, const TensorInfo &info) {
  llvm::ArrayRef<uint8_t> bytes = files.bytes(info);
  if (!info.blocks || !info.blocks->format)
    return llvm::toStringRef(bytes).str();
  std::vector<uint8_t> joined;
  if (const TensorInfo *scales = files.scalesOf(info)) {
    llvm::ArrayRef<uint8_t> each = files.bytes(*scales);
    joined.resize(each.size() * info.blocks->bytes);
    for (size_t i = 0; i < each.size(); ++i)
      joinMxfp4(&bytes[i * (info.blocks->bytes - 1)], each[i], &joined[i * info.blocks->bytes]);
    bytes = joined;
  }
  uint64_t count = bytes.size() / info.blocks->bytes;
  std::vector<float> values(count * info.blocks->elements);
  decodeBlocks(*info.blocks, bytes.data(), count, values.data());
  return std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
}

/// Uses the types of .npy, in which bf16 is stored by its bits.
llvm::Expected<interp::Tensor> storedTensor(const WeightFiles &files, StringRef name,
                                            MLIRContext *context) {
  const TensorInfo *info = files.find(name);
  if (!info)
    return llvm::createStringError(files.folder() + ": there is no tensor '" + name + "'");
  interp::NpyArray array{"", SmallVector<int64_t>(ArrayRef<int64_t>(info->shape)),
                         plainBytes(files, *info)};
  switch (info->type) {
  case StoredType::F32:
    array.descr = "<f4";
    return interp::toTensor(array, Float32Type::get(context));
  case StoredType::BF16:
    array.descr = "<u2";
    return interp::toTensor(array, BFloat16Type::get(context));
  case StoredType::F16:
    array.descr = "<f2";
    return interp::toTensor(array, Float16Type::get(context));
  default:
    // No test: blocks are decoded, and no other type is stored in a file of weights.
    return llvm::createStringError(files.pathOf(*info) + ": tensor '" + name + "' is of type " +
                                   nameOf(info->type) + ", which is not a type of weights");
  }
}

llvm::Expected<interp::WeightProvider> checkpointWeights(StringRef folder, MLIRContext *context) {
  if (folder.empty())
    return interp::WeightProvider();
  if (!WeightFiles::present(folder))
    return [folder = folder.str(), context](StringRef name) {
      return readFile(folder, name, context);
    };
  llvm::Expected<WeightFiles> files = WeightFiles::open(folder);
  if (!files)
    return files.takeError();
  auto shared = std::make_shared<WeightFiles>(std::move(*files));
  return [shared, context](StringRef name) { return storedTensor(*shared, name, context); };
}

} // namespace mica
