//===- Value.h - values of the interpreter ----------------------*- C++ -*-===//
//
// Tensors, index scalars and key/value caches. Floats are always stored in f32, but a tensor of
// bf16 or f16 holds only values of that type, and a quantized tensor only values that its integers
// can represent, so that values are rounded exactly where the types of the IR require it.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_INTERPRETER_VALUE_H
#define MICA_IR_INTERPRETER_VALUE_H

#include "ir/Mica/Mica.h"

#include "llvm/Support/Error.h"

#include <memory>
#include <variant>
#include <vector>

namespace mica::interp {

/// `value` rounded to f32 and then, ties to even, to `type` (f32, bf16 or f16). Quantized types are
/// rounded later, row by row (roundRow): they stay f32 here.
float roundTo(mlir::Type type, double value);

/// Rounds a row along the last axis, of results of roundTo, to the quantized values of `type` if it
/// is !mica.int8, !mica.int_rows or !mica.block.
void roundRow(mlir::Type type, llvm::MutableArrayRef<float> row);

/// Fails if a value with that many elements would exceed the interpreter's memory limit.
llvm::Error checkSize(llvm::ArrayRef<int64_t> extents);

/// A dense tensor in row-major order.
struct Tensor {
  llvm::SmallVector<int64_t> shape;
  mlir::Type elementType;
  std::vector<float> floats; ///< the elements if the type is f32, bf16, f16 or quantized
  std::vector<int64_t> ints; ///< the elements if the type is i1, i32, i64 or index

  /// All zero. `elementType` is a float, integer or index type.
  static Tensor zeros(mlir::Type elementType, llvm::ArrayRef<int64_t> shape);

  /// All zero, of the ranked tensor type `type` with its dynamic extents replaced by `extents`, in
  /// order.
  static Tensor zerosOf(mlir::Type type, llvm::ArrayRef<int64_t> extents);

  bool isFloat() const {
    return llvm::isa<mlir::FloatType>(elementType) || isQuantized(elementType);
  }
  int64_t getNumElements() const { return isFloat() ? floats.size() : ints.size(); }

  /// Elements of one entry along the first axis.
  int64_t rowSize() const;

  /// Entry `index` along the first axis, [rowSize()].
  llvm::ArrayRef<float> row(int64_t index) const;

  /// Part `index` of `parts` along `axis`, of floats: each has the extent divided by `parts`,
  /// rounded up, and is zero beyond the tensor.
  Tensor part(int64_t axis, int64_t index, int64_t parts) const;

  /// Writes a float at a flat index, rounded to the element type.
  void set(int64_t index, double value) { floats[index] = roundTo(elementType, value); }

  /// Applies roundRow to all rows; required after setting elements.
  void roundRows();
};

/// Whether both have the same shape, type and bits.
bool haveSameBits(const Tensor &a, const Tensor &b);

/// [layers, batch, positions, ...]: a state with all positions.
llvm::SmallVector<int64_t> extentsOf(SequenceState type, int64_t batch, int64_t positions);

/// A state with every layer, sequence and position, even if a program would keep fewer:
/// [layers, batch, positions, ...], followed by the row shape of the state.
struct Cache {
  SequenceState type;
  int64_t batch;
  int64_t positions;
  std::vector<float> data;
  std::vector<bool> isWritten; ///< per layer, sequence and position

  /// Index of a layer's row.
  int64_t slot(int64_t layer, int64_t sequence, int64_t position) const {
    return (layer * batch + sequence) * positions + position;
  }
  /// Index of its first element.
  int64_t offset(int64_t layer, int64_t sequence, int64_t position) const {
    return slot(layer, sequence, position) * rowSize();
  }
  int64_t rowSize() const;
};

/// One version of a cache. An append is done in place: it marks the version that it consumes and
/// returns the next one.
struct CacheVersion {
  std::shared_ptr<Cache> cache;
  std::shared_ptr<bool> consumed;
};

/// A value of the program. Copies share their data.
class Value {
public:
  Value() : data(int64_t(0)) {}
  Value(Tensor tensor) : data(std::make_shared<const Tensor>(std::move(tensor))) {}
  Value(int64_t scalar) : data(scalar) {}
  Value(CacheVersion cache) : data(std::move(cache)) {}

  /// An empty (zeroed) state for `batch` sequences of at most `positions` positions. checkSize of
  /// its extents must have succeeded.
  static Value makeCache(SequenceState type, int64_t batch, int64_t positions);

  /// Null if the value is something else.
  const Tensor *getTensor() const;
  const CacheVersion *getCache() const;

  /// An integer or index; only valid if the value is one.
  bool isScalar() const { return std::holds_alternative<int64_t>(data); }
  int64_t getScalar() const { return std::get<int64_t>(data); }

  /// A cache as a tensor [layers, batch, positions, ...]; other values unchanged.
  Value flattened() const;

  /// The same value that shares no memory with this one and, if a cache, has not been consumed.
  Value clone() const;

  /// Fails unless the value is a valid value of `type`.
  llvm::Error checkFits(mlir::Type type) const;

  /// Numbers with 6 significant digits, nested in brackets as in a dense attribute, after the type.
  void print(llvm::raw_ostream &os) const;

private:
  std::variant<int64_t, std::shared_ptr<const Tensor>, CacheVersion> data;
};

/// The elements of a dense attribute.
llvm::Expected<Tensor> tensorFrom(mlir::ElementsAttr attribute);

/// The values of each rank.
using RankValues = llvm::SmallVector<llvm::SmallVector<Value>>;

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_VALUE_H
