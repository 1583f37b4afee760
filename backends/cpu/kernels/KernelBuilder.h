//===- KernelBuilder.h - building kernels -----------------------*- C++ -*-===//
//
// The builder with which the kernels of this folder are emitted. Vectors hold 16 f32; on a target
// with narrower registers LLVM splits them. A kernel is a function (begin, end, buffers...,
// scalars...) over a range of independent tasks.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_BACKENDS_CPU_KERNELS_KERNELBUILDER_H
#define MICA_BACKENDS_CPU_KERNELS_KERNELBUILDER_H

#include "backends/cpu/target/TargetDescription.h"
#include "ir/Exec/Exec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/SymbolTable.h"

namespace mica::cpu {

/// Lanes of the kernels' vectors.
inline constexpr int64_t kLanes = 16;

/// Emits the body of one kernel.
class KernelBuilder : public mlir::ImplicitLocOpBuilder {
public:
  KernelBuilder(mlir::Location loc, mlir::OpBuilder builder, const TargetDescription &target)
      : ImplicitLocOpBuilder(loc, builder), target(target) {}

  const TargetDescription &target;

  /// Whether a vector of 16 f32 fits in a register; otherwise it takes two registers of 8.
  bool isWide() const { return target.vectorBits == 512; }
  /// The number of vectors that fit in registers.
  int64_t registers() const { return isWide() ? 32 : 8; }

  // Constants and index arithmetic.
  mlir::Value idx(int64_t value) { return mlir::arith::ConstantIndexOp::create(*this, value); }
  mlir::Value f32(float value) {
    return mlir::arith::ConstantFloatOp::create(*this, getF32Type(), llvm::APFloat(value));
  }
  mlir::Value splat(float value) { return broadcast(f32(value)); }
  mlir::Value add(mlir::Value a, mlir::Value b) { return mlir::arith::AddIOp::create(*this, a, b); }
  mlir::Value add(mlir::Value a, int64_t b) { return b ? add(a, idx(b)) : a; }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return mlir::arith::SubIOp::create(*this, a, b); }
  mlir::Value mul(mlir::Value a, int64_t b) {
    return mlir::arith::MulIOp::create(*this, a, idx(b));
  }
  mlir::Value div(mlir::Value a, int64_t b) {
    return mlir::arith::DivUIOp::create(*this, a, idx(b));
  }
  mlir::Value rem(mlir::Value a, int64_t b) {
    return mlir::arith::RemUIOp::create(*this, a, idx(b));
  }
  mlir::Value isEqual(mlir::Value a, mlir::Value b) {
    return mlir::arith::CmpIOp::create(*this, mlir::arith::CmpIPredicate::eq, a, b);
  }

  // Arithmetic on f32, scalars or vectors.
  mlir::Value addf(mlir::Value a, mlir::Value b) {
    return mlir::arith::AddFOp::create(*this, a, b);
  }
  mlir::Value subf(mlir::Value a, mlir::Value b) {
    return mlir::arith::SubFOp::create(*this, a, b);
  }
  mlir::Value mulf(mlir::Value a, mlir::Value b) {
    return mlir::arith::MulFOp::create(*this, a, b);
  }
  mlir::Value divf(mlir::Value a, mlir::Value b) {
    return mlir::arith::DivFOp::create(*this, a, b);
  }
  /// The maximum; b if one of them is NaN, as in the instruction.
  mlir::Value maxf(mlir::Value a, mlir::Value b) {
    mlir::Value more = mlir::arith::CmpFOp::create(*this, mlir::arith::CmpFPredicate::OGT, a, b);
    return mlir::arith::SelectOp::create(*this, more, a, b);
  }
  /// The minimum; b if one of them is NaN.
  mlir::Value minf(mlir::Value a, mlir::Value b) {
    mlir::Value less = mlir::arith::CmpFOp::create(*this, mlir::arith::CmpFPredicate::OLT, a, b);
    return mlir::arith::SelectOp::create(*this, less, a, b);
  }
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c) {
    return mlir::vector::FMAOp::create(*this, a, b, c);
  }
  mlir::Value exp(mlir::Value x) { return mlir::math::ExpOp::create(*this, x); }

  // Vectors.
  mlir::VectorType vec(mlir::Type element, int64_t lanes = kLanes) {
    return mlir::VectorType::get({lanes}, element);
  }
  mlir::VectorType vecF32() { return vec(getF32Type()); }
  mlir::Value broadcast(mlir::Value scalar, int64_t lanes = kLanes) {
    return mlir::vector::BroadcastOp::create(*this, vec(scalar.getType(), lanes), scalar);
  }
  /// Sum (maximum) of all lanes.
  mlir::Value reduceAdd(mlir::Value vector);
  mlir::Value reduceMax(mlir::Value vector);
  /// 1 / sqrt(sum of all lanes / count + eps) in every lane.
  mlir::Value inverseRootOfMean(mlir::Value sums, int64_t count, double eps);
  /// Mask of the first `live` lanes.
  mlir::Value maskOf(mlir::Value live, int64_t lanes = kLanes) {
    return mlir::vector::CreateMaskOp::create(*this, vec(getI1Type(), lanes), live);
  }

  // Memory. Values in registers are f32; buffers may hold f32, bf16 or integers of 8 bits.
  mlir::Value load(mlir::Value buffer, mlir::ValueRange at) {
    return mlir::memref::LoadOp::create(*this, buffer, at);
  }
  void store(mlir::Value value, mlir::Value buffer, mlir::ValueRange at) {
    mlir::memref::StoreOp::create(*this, value, buffer, at);
  }
  /// Loads an i32 as an index.
  mlir::Value loadIndex(mlir::Value buffer, mlir::ValueRange at) {
    return mlir::arith::IndexCastOp::create(*this, getIndexType(), load(buffer, at));
  }
  /// Loads a scalar as f32; `storeF32` rounds it to the buffer's element type.
  mlir::Value loadF32(mlir::Value buffer, mlir::ValueRange at) { return toF32(load(buffer, at)); }
  void storeF32(mlir::Value value, mlir::Value buffer, mlir::ValueRange at) {
    store(fromF32(value, elementOf(buffer)), buffer, at);
  }
  /// Loads `lanes` consecutive elements as f32; those after `live` (null: all) are zero.
  mlir::Value loadVector(mlir::Value buffer, mlir::ValueRange at, mlir::Value live = {},
                         int64_t lanes = kLanes);
  /// Rounds to the buffer's element type; elements after `live` (null: all) are not changed.
  void storeVector(mlir::Value vector, mlir::Value buffer, mlir::ValueRange at,
                   mlir::Value live = {});
  /// Loads `lanes` consecutive elements in the buffer's element type.
  mlir::Value loadRaw(mlir::Value buffer, mlir::ValueRange at, int64_t lanes) {
    return mlir::vector::LoadOp::create(*this, vec(elementOf(buffer), lanes), buffer, at);
  }
  /// Converts floats and integers to f32.
  mlir::Value toF32(mlir::Value value);
  mlir::Value fromF32(mlir::Value value, mlir::Type element);

  // Integers in registers, and memory of bytes that contains other types.
  mlir::Value splatInt(int64_t value, mlir::Type element, int64_t lanes = kLanes) {
    return mlir::arith::ConstantOp::create(
        *this, mlir::DenseElementsAttr::get(vec(element, lanes), getIntegerAttr(element, value)));
  }
  mlir::Value bitcast(mlir::Value vector, mlir::Type element);
  /// Two vectors [16 x f32] rounded to bf16 and interleaved: even[0], odd[0], even[1], ...
  mlir::Value pairsOfBf16(mlir::Value even, mlir::Value odd);
  /// Loads `lanes` values of type `element` from byte `at` of a buffer of i8.
  mlir::Value loadFromBytes(mlir::Value buffer, mlir::ValueRange at, mlir::Type element,
                            int64_t lanes = kLanes);
  /// Loads the value of type `element` at byte `at` into all lanes.
  mlir::Value broadcastFromBytes(mlir::Value buffer, mlir::ValueRange at, mlir::Type element);
  /// The four bytes of each lane of [64 x i8], each as [16 x i32].
  mlir::SmallVector<mlir::Value> splitBytes(mlir::Value bytes, bool isSigned);
  /// Bytes [64 x i8] as operands of dotBytes: unchanged, or the four bytes of each lane separately.
  mlir::SmallVector<mlir::Value> signedBytes(mlir::Value bytes);
  mlir::SmallVector<mlir::Value> unsignedBytes(mlir::Value bytes);
  /// sums [16 x i32] + products of four consecutive bytes, a unsigned and b signed.
  mlir::Value dotBytes(mlir::Value sums, mlir::ArrayRef<mlir::Value> a,
                       mlir::ArrayRef<mlir::Value> b);
  /// Whether integer rows with that many bits are stored and multiplied as 16-bit words.
  bool hasWords(int64_t rowBits) const { return rowBits == 16 && target.usesWords(); }
  /// The even and the odd bytes of [64 x i8] as unsigned words, each as [32 x i16].
  mlir::SmallVector<mlir::Value> splitWords(mlir::Value bytes);
  /// sums [16 x i32] + products of two consecutive words [32 x i16].
  mlir::Value dotWords(mlir::Value sums, mlir::Value a, mlir::Value b);
  /// Sums [32 x i16] of the products of two consecutive bytes [64 x i8], a unsigned and b signed,
  /// which must fit in 16 bits.
  mlir::Value multiplyBytes(mlir::Value a, mlir::Value b);
  /// Bytes [64 x i8] times the signs of `signs`, -1 or 1; the sign of 0 is unspecified.
  mlir::Value applySigns(mlir::Value bytes, mlir::Value signs);
  /// table[code] + added for codes [64 x i8] below 16, as unsigned bytes.
  mlir::Value lookUp(mlir::Value codes, llvm::ArrayRef<int8_t> table, int64_t added);
  mlir::Type elementOf(mlir::Value buffer) {
    return llvm::cast<mlir::MemRefType>(buffer.getType()).getElementType();
  }
  /// A buffer on the stack, 64-byte aligned.
  mlir::Value stackBuffer(llvm::ArrayRef<int64_t> shape, mlir::Type element);

  // Control flow.
  using Body = llvm::function_ref<void(mlir::Value)>;
  using CarryBody =
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)>;
  void loop(mlir::Value from, mlir::Value to, int64_t step, Body body);
  void loop(int64_t to, Body body) { loop(idx(0), idx(to), 1, body); }
  /// A loop with loop-carried values.
  llvm::SmallVector<mlir::Value> carry(mlir::Value from, mlir::Value to, int64_t step,
                                       mlir::ValueRange inits, CarryBody body);
  /// The same for a body that uses all registers: disables unrolling by LLVM, which would spill the
  /// values of several iterations.
  llvm::SmallVector<mlir::Value> carryRolled(mlir::Value from, mlir::Value to, int64_t step,
                                             mlir::ValueRange inits, CarryBody body);
  /// Calls `body(at)` for at = from, then for the result of each call, while it is less than `to`.
  void whileLoop(mlir::Value from, mlir::Value to,
                 llvm::function_ref<mlir::Value(mlir::Value)> body);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  void either(mlir::Value condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise);
  /// The values computed by `body` from `values` if `condition` is true, else `values`.
  llvm::SmallVector<mlir::Value>
  changeWhen(mlir::Value condition, mlir::ValueRange values,
             llvm::function_ref<llvm::SmallVector<mlir::Value>()> body);
  /// Calls `body(column, live)` for vectors that cover `columns` columns; `live` is null for
  /// complete vectors.
  void eachVector(int64_t columns, llvm::function_ref<void(mlir::Value, mlir::Value)> body);
  /// The same with one loop-carried value.
  mlir::Value
  eachVector(int64_t columns, mlir::Value init,
             llvm::function_ref<mlir::Value(mlir::Value, mlir::Value, mlir::Value)> body);
};

/// The kernels of a module, created once per identity and types.
class KernelLibrary {
public:
  KernelLibrary(mlir::ModuleOp module, TargetDescription target);

  using Build = llvm::function_ref<void(KernelBuilder &, mlir::ValueRange)>;

  /// The kernel over buffers of `types` that is completely described by `identity`; its symbol is
  /// the base name in it, or `base_N` if several kernels share it. `build` receives (begin, end,
  /// buffers...) if the kernel does not exist yet. `cost` may be null.
  mlir::func::FuncOp getOrCreate(exec::KernelAttr identity, llvm::ArrayRef<mlir::Type> types,
                                 mlir::Location loc, Build build, exec::CostAttr cost);

  /// A constant table, created once per content.
  template <typename Number>
  mlir::memref::GlobalOp getOrCreateTable(llvm::StringRef base, llvm::ArrayRef<Number> values,
                                          mlir::Location loc) {
    mlir::Builder builder(module.getContext());
    mlir::Type type =
        std::is_same_v<Number, float> ? mlir::Type(builder.getF32Type()) : builder.getI64Type();
    auto extents = mlir::RankedTensorType::get({static_cast<int64_t>(values.size())}, type);
    return getOrCreateTable(base, mlir::DenseElementsAttr::get(extents, values), loc);
  }

private:
  mlir::memref::GlobalOp getOrCreateTable(llvm::StringRef base, mlir::DenseElementsAttr values,
                                          mlir::Location loc);

  mlir::ModuleOp module;
  TargetDescription target;
  mlir::SymbolTable symbols;
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Type>, mlir::func::FuncOp> kernels;
  llvm::DenseMap<mlir::Attribute, mlir::memref::GlobalOp> tables;
};

/// The type of a kernel argument for a tensor: rows have a dynamic stride, so that views of columns
/// can be passed; other dimensions are contiguous.
mlir::MemRefType kernelBufferType(mlir::RankedTensorType tensor);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_KERNELBUILDER_H
