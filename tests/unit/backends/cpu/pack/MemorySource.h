//===- MemorySource.h - tensors in memory -----------------------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_PACK_MEMORYSOURCE_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_PACK_MEMORYSOURCE_H

#include "backends/cpu/pack/WeightSource.h"
#include "tests/unit/RandomBlocks.h"

#include "llvm/ADT/StringMap.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace mica::cpu {

/// Tensors in memory, one byte off their alignment.
class MemorySource final : public WeightSource {
public:
  /// Values are k / 8 for random k in [-128, 128): exact in every type.
  void add(llvm::StringRef name, WeightType type, llvm::ArrayRef<int64_t> shape) {
    Entry &entry = entries[name];
    entry.shape.assign(shape.begin(), shape.end());
    entry.type = type;
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    entry.bytes.resize(1 + count * sizeOf(type));
    for (int64_t i = 0; i < count; ++i) {
      float value = float(int(random() % 256) - 128) / 8;
      entry.values.push_back(value);
      set(entry, i, value);
    }
  }
  /// Values as in `add`, in f32, stored in blocks of 32: a power-of-two scale and a byte each.
  /// `missing` bytes are omitted at the end.
  void addBlocks(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, size_t missing = 0) {
    add(name, WeightType::F32, shape);
    Entry &entry = entries[name];
    entry.format = &kFormat;
    entry.blocks.resize(1);
    for (size_t i = 0; i < entry.values.size(); ++i) {
      if (i % 32 == 0)
        entry.blocks.push_back(kEighth);
      entry.blocks.push_back(static_cast<uint8_t>(static_cast<int8_t>(entry.values[i] * 8)));
    }
    entry.blocks.resize(entry.blocks.size() - missing);
  }
  /// Random blocks of a format; `missing` bytes are omitted at the end.
  void addBlocksOf(const BlockFormat &format, llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
                   size_t missing = 0) {
    Entry &entry = entries[name];
    entry.shape.assign(shape.begin(), shape.end());
    entry.type = WeightType::F32;
    entry.format = &format;
    size_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    setBlocks(name, test::randomBlocks(format, count / format.elements, random()));
    entry.blocks.resize(entry.blocks.size() - missing);
  }
  /// Replaces the blocks of addBlocksOf.
  void setBlocks(llvm::StringRef name, const std::vector<uint8_t> &blocks) {
    Entry &entry = entries[name];
    entry.values = test::decodeAll(*entry.format, blocks);
    entry.blocks = blocks;
    entry.blocks.insert(entry.blocks.begin(), 0);
  }
  /// Replaces a scale or an offset, `at` bytes into block `index`.
  void setScale(llvm::StringRef name, size_t index, int32_t at, uint16_t bits) {
    Entry &entry = entries[name];
    test::storeScale(*entry.format, at, bits,
                     entry.blocks.data() + 1 + index * entry.format->bytes);
  }
  /// The same for separate bytes of scales.
  void addApart(llvm::StringRef name, llvm::ArrayRef<int64_t> shape) {
    addBlocks(name, shape);
    Entry &entry = entries[name];
    std::vector<uint8_t> numbers = {0};
    for (size_t i = 1; i < entry.blocks.size(); ++i)
      (i % 33 == 1 ? entry.scales : numbers).push_back(entry.blocks[i]);
    entry.blocks = numbers;
  }
  /// Makes the scale of a block of addBlocks too large.
  void corruptBlock(llvm::StringRef name, size_t index) {
    entries[name].blocks[1 + 33 * index] = 255;
  }
  /// Serves dequantized numbers of blocks, or blocks again.
  void decodeAll() { servesBlocks = false; }
  void encodeAll() { servesBlocks = true; }
  /// Replaces the values, which must be exact in the tensor's type.
  void set(llvm::StringRef name, std::vector<float> values) {
    Entry &entry = entries[name];
    for (size_t i = 0; i < values.size(); ++i)
      set(entry, i, values[i]);
    entry.values = std::move(values);
  }
  void poison(llvm::StringRef name, int64_t index, float value = NAN) {
    set(entries[name], index, value);
  }
  llvm::Expected<SourceTensor> find(llvm::StringRef name) const override {
    auto entry = entries.find(name);
    if (entry == entries.end())
      return llvm::createStringError("no tensor \"" + name + "\"");
    const Entry &found = entry->second;
    if (!found.blocks.empty() && servesBlocks) {
      SourceTensor tensor{found.type, found.shape, llvm::ArrayRef(found.blocks).drop_front()};
      tensor.blocks = {found.format, join};
      tensor.scales = found.scales;
      return tensor;
    }
    return SourceTensor{found.type, found.shape, llvm::ArrayRef(found.bytes).drop_front()};
  }
  void release(llvm::StringRef name) const override { released.push_back(name.str()); }
  const std::vector<float> &values(llvm::StringRef name) const {
    return entries.find(name)->second.values;
  }

  mutable std::vector<std::string> released;

private:
  struct Entry {
    WeightType type;
    llvm::SmallVector<int64_t, 4> shape;
    std::vector<uint8_t> bytes, blocks, scales;
    std::vector<float> values;
    const BlockFormat *format = nullptr;
  };
  /// The format of addBlocks, which no file has.
  static constexpr BlockFormat kFormat = {.name = "bytes",
                                          .elements = 32,
                                          .bytes = 33,
                                          .group = 32,
                                          .low = {1, 8, 1},
                                          .bias = 128,
                                          .isSigned = true,
                                          .scaleType = ScaleType::E8M0Half};
  /// The bits of 1 / 8.
  static constexpr uint8_t kEighth = 125;

  static void join(const uint8_t *numbers, uint8_t scale, uint8_t *block) {
    block[0] = scale;
    std::memcpy(block + 1, numbers, 32);
  }
  static void set(Entry &entry, int64_t index, float value) {
    uint8_t *at = entry.bytes.data() + 1 + index * sizeOf(entry.type);
    if (entry.type == WeightType::F16) {
      _Float16 half = value;
      std::memcpy(at, &half, 2);
    } else {
      uint32_t bits = std::bit_cast<uint32_t>(value);
      std::memcpy(at, reinterpret_cast<uint8_t *>(&bits) + (entry.type == WeightType::BF16 ? 2 : 0),
                  sizeOf(entry.type));
    }
  }

  std::mt19937 random{7};
  llvm::StringMap<Entry> entries;
  bool servesBlocks = true;
};

} // namespace mica::cpu

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_PACK_MEMORYSOURCE_H
