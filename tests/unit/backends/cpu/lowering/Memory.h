//===- Memory.h - values in the layouts of programs -------------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_MEMORY_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_MEMORY_H

#include "ir/Interpreter/Value.h"

namespace mica::test {

/// Memory that ends where its mapping ends, so that an access past it faults immediately; all bytes
/// are 0xff: a NaN in every float type.
class GuardedMemory {
public:
  /// `alignment` is a power of two, up to a page.
  explicit GuardedMemory(size_t size, size_t alignment = 4);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory &&other) noexcept;
  GuardedMemory &operator=(GuardedMemory &&) = delete;

  llvm::MutableArrayRef<uint8_t> bytes() const { return {start, size}; }
  uint8_t *data() const { return start; }
  /// Whether nothing was written to the rest of the first page and to the padding at the end.
  bool guardsAreIntact() const;
  /// Makes the memory read-only.
  void protect();

private:
  uint8_t *mapping, *start;
  size_t mapped, size;
};

/// The number of bytes of a tensor of `shape`.
size_t bytesOf(mlir::Type elementType, llvm::ArrayRef<int64_t> shape);

/// A tensor of f32, bf16 or i32, row-major.
void storeTensor(const interp::Tensor &tensor, llvm::MutableArrayRef<uint8_t> bytes);
interp::Tensor loadTensor(mlir::Type elementType, llvm::ArrayRef<int64_t> shape,
                          llvm::ArrayRef<uint8_t> bytes);

/// The extents of `cache` in the layout of `type`; the number of positions is rounded up to whole
/// blocks.
llvm::SmallVector<int64_t> physicalShapeOf(const interp::Cache &cache, SequenceState type);

/// Whether memory holds what was written at a position: a recurrent state does not.
bool storesPositions(SequenceState type);

/// A cache in the layout of `type`, with zeros as padding. Of a state of fixed size, the last
/// positions are stored, and each slot is loaded to all positions that share it.
/// A state that does not store positions starts as NaN, on which no result may depend, and is not
/// loaded.
void storeCache(const interp::Cache &cache, SequenceState type,
                llvm::MutableArrayRef<uint8_t> bytes);
void loadCache(interp::Cache &cache, SequenceState type, llvm::ArrayRef<uint8_t> bytes);

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_MEMORY_H
