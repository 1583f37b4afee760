//===- KernelBuilder.cpp - emitting kernels -------------------------------===//

#include "backends/cpu/kernels/KernelBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mica::cpu;

// Lanes may be summed as a tree: a chain of sixteen additions is slower and no more precise.
static constexpr arith::FastMathFlags kTree = arith::FastMathFlags::reassoc;

Value KernelBuilder::reduceAdd(Value vector) {
  return vector::ReductionOp::create(*this, vector::CombiningKind::ADD, vector, kTree);
}

Value KernelBuilder::reduceMax(Value vector) {
  return vector::ReductionOp::create(*this, vector::CombiningKind::MAXNUMF, vector,
                                     kTree | arith::FastMathFlags::nnan);
}

Value KernelBuilder::inverseRootOfMean(Value sums, int64_t count, double eps) {
  Value mean = mulf(reduceAdd(sums), f32(1.0f / static_cast<float>(count)));
  Value root = math::SqrtOp::create(*this, addf(mean, f32(static_cast<float>(eps))));
  return broadcast(divf(f32(1.0f), root));
}

Value KernelBuilder::toF32(Value value) {
  Type wide = getF32Type();
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    wide = vector.clone(wide);
  if (getElementTypeOrSelf(value.getType()).isInteger())
    return arith::SIToFPOp::create(*this, wide, value);
  return value.getType() == wide ? value : arith::ExtFOp::create(*this, wide, value).getResult();
}

Value KernelBuilder::fromF32(Value value, Type element) {
  Type narrow = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    narrow = vector.clone(element);
  return value.getType() == narrow ? value
                                   : arith::TruncFOp::create(*this, narrow, value).getResult();
}

Value KernelBuilder::pairsOfBf16(Value even, Value odd) {
  Type bf16 = getBF16Type();
  if (!target.bf16Dot || !isWide())
    return vector::InterleaveOp::create(*this, fromF32(even, bf16), fromF32(odd, bf16));
  // For two separate vectors, LLVM would emit two conversions.
  Value both = LLVM::CallIntrinsicOp::create(*this, vec(bf16, 2 * kLanes),
                                             getStringAttr("llvm.x86.avx512bf16.cvtne2ps2bf16.512"),
                                             ValueRange{odd, even})
                   .getResult(0);
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < kLanes; ++i)
    order.append({i, kLanes + i});
  return vector::ShuffleOp::create(*this, both, both, order);
}

Value KernelBuilder::bitcast(Value vector, Type element) {
  auto type = cast<VectorType>(vector.getType());
  int64_t bits = type.getNumElements() * type.getElementTypeBitWidth();
  return vector::BitCastOp::create(*this, vec(element, bits / element.getIntOrFloatBitWidth()),
                                   vector);
}

Value KernelBuilder::loadFromBytes(Value buffer, ValueRange at, Type element, int64_t lanes) {
  return bitcast(loadRaw(buffer, at, lanes * element.getIntOrFloatBitWidth() / 8), element);
}

Value KernelBuilder::broadcastFromBytes(Value buffer, ValueRange at, Type element) {
  return broadcast(vector::ExtractOp::create(*this, loadFromBytes(buffer, at, element, 1), 0));
}

SmallVector<Value> KernelBuilder::splitBytes(Value bytes, bool isSigned) {
  Type i32 = getI32Type();
  Value lanes = bitcast(bytes, i32), down = splatInt(24, i32);
  // Shifts each byte to the top of its lane, and back with or without sign extension.
  SmallVector<Value> values;
  for (int64_t byte = 0; byte < 4; ++byte) {
    Value top = lanes;
    if (byte < 3)
      top = arith::ShLIOp::create(*this, top, splatInt(24 - 8 * byte, i32));
    values.push_back(isSigned ? arith::ShRSIOp::create(*this, top, down).getResult()
                              : arith::ShRUIOp::create(*this, top, down).getResult());
  }
  return values;
}

SmallVector<Value> KernelBuilder::signedBytes(Value bytes) {
  return target.int8Dot ? SmallVector<Value>{bytes} : splitBytes(bytes, /*isSigned=*/true);
}

SmallVector<Value> KernelBuilder::unsignedBytes(Value bytes) {
  return target.int8Dot ? SmallVector<Value>{bytes} : splitBytes(bytes, /*isSigned=*/false);
}

/// Calls a 256-bit vector intrinsic for each half of 512-bit operands.
static Value callOnHalves(KernelBuilder &b, StringRef name, VectorType result,
                          ValueRange operands) {
  Value joined = arith::ConstantOp::create(b, b.getZeroAttr(result));
  int64_t lanes = result.getDimSize(0) / 2;
  for (int64_t which : {0, 1}) {
    SmallVector<Value> halves;
    for (Value whole : operands) {
      int64_t count = cast<VectorType>(whole.getType()).getDimSize(0) / 2;
      halves.push_back(
          vector::ExtractStridedSliceOp::create(b, whole, which * count, count, /*strides=*/1));
    }
    Value half = LLVM::CallIntrinsicOp::create(b, b.vec(result.getElementType(), lanes),
                                               b.getStringAttr(name), halves)
                     .getResult(0);
    joined = vector::InsertStridedSliceOp::create(b, half, joined, which * lanes, /*strides=*/1);
  }
  return joined;
}

/// Calls the 512-bit intrinsic if the target has it, otherwise `narrow` for each half.
static Value callByWidth(KernelBuilder &b, const Twine &wide, const Twine &narrow,
                         VectorType result, ValueRange operands) {
  if (!b.isWide())
    return callOnHalves(b, narrow.str(), result, operands);
  return LLVM::CallIntrinsicOp::create(b, result, b.getStringAttr(wide), operands).getResult(0);
}

/// Calls an instruction that adds products of integers to `sums` [16 x i32].
static Value dotIntegers(KernelBuilder &b, StringRef name, Value sums, Value x, Value y) {
  return callByWidth(b, name + ".512", name + ".256", cast<VectorType>(sums.getType()),
                     {sums, x, y});
}

Value KernelBuilder::dotBytes(Value sums, ArrayRef<Value> a, ArrayRef<Value> b) {
  if (target.int8Dot)
    return dotIntegers(*this, "llvm.x86.avx512.vpdpbusd", sums, a[0], b[0]);
  for (auto [x, w] : llvm::zip_equal(a, b))
    sums = add(sums, arith::MulIOp::create(*this, x, w));
  return sums;
}

SmallVector<Value> KernelBuilder::splitWords(Value bytes) {
  Type i16 = getI16Type();
  Value both = bitcast(bytes, i16);
  return {arith::AndIOp::create(*this, both, splatInt(0xff, i16, 2 * kLanes)),
          arith::ShRUIOp::create(*this, both, splatInt(8, i16, 2 * kLanes))};
}

Value KernelBuilder::dotWords(Value sums, Value a, Value b) {
  if (target.int8Dot)
    return dotIntegers(*this, "llvm.x86.avx512.vpdpwssd", sums, a, b);
  return add(sums, callByWidth(*this, "llvm.x86.avx512.pmaddw.d.512", "llvm.x86.avx2.pmadd.wd",
                               vec(getI32Type()), {a, b}));
}

Value KernelBuilder::multiplyBytes(Value a, Value b) {
  return callByWidth(*this, "llvm.x86.avx512.pmaddubs.w.512", "llvm.x86.avx2.pmadd.ub.sw",
                     vec(getI16Type(), 2 * kLanes), {a, b});
}

Value KernelBuilder::applySigns(Value bytes, Value signs) {
  auto type = cast<VectorType>(bytes.getType());
  if (!isWide())
    return callOnHalves(*this, "llvm.x86.avx2.psign.b", type, {bytes, signs});
  Value zero = arith::ConstantOp::create(*this, getZeroAttr(type));
  Value isNegative = arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, signs, zero);
  return arith::SelectOp::create(*this, isNegative, arith::SubIOp::create(*this, zero, bytes),
                                 bytes);
}

Value KernelBuilder::lookUp(Value codes, ArrayRef<int8_t> table, int64_t added) {
  auto type = cast<VectorType>(codes.getType());
  SmallVector<int8_t> entries; // the table, repeated for each part of 16 bytes
  for (int64_t i = 0; i < type.getDimSize(0); ++i)
    entries.push_back(static_cast<int8_t>(table[i % 16] + added));
  Value constant =
      arith::ConstantOp::create(*this, DenseElementsAttr::get(type, ArrayRef<int8_t>(entries)));
  return callByWidth(*this, "llvm.x86.avx512.pshuf.b.512", "llvm.x86.avx2.pshuf.b", type,
                     {constant, codes});
}

Value KernelBuilder::loadVector(Value buffer, ValueRange at, Value live, int64_t lanes) {
  if (!live)
    return toF32(loadRaw(buffer, at, lanes));
  VectorType type = vec(elementOf(buffer), lanes);
  Value zero = arith::ConstantOp::create(*this, getZeroAttr(type));
  return toF32(vector::MaskedLoadOp::create(*this, type, buffer, at, maskOf(live, lanes), zero));
}

void KernelBuilder::storeVector(Value vector, Value buffer, ValueRange at, Value live) {
  Value narrow = fromF32(vector, elementOf(buffer));
  if (!live) {
    vector::StoreOp::create(*this, narrow, buffer, at);
    return;
  }
  // LLVM 22 stores four bytes of bf16 if a constant mask leaves one lane of a vector that LLVM
  // itself converts to bf16.
  if (getConstantIntValue(live) == 1) {
    store(vector::ExtractOp::create(*this, narrow, 0), buffer, at);
    return;
  }
  int64_t lanes = cast<VectorType>(narrow.getType()).getDimSize(0);
  vector::MaskedStoreOp::create(*this, buffer, at, maskOf(live, lanes), narrow);
}

Value KernelBuilder::stackBuffer(ArrayRef<int64_t> shape, Type element) {
  return memref::AllocaOp::create(*this, MemRefType::get(shape, element), getI64IntegerAttr(64));
}

void KernelBuilder::loop(Value from, Value to, int64_t step, Body body) {
  auto op = scf::ForOp::create(*this, from, to, idx(step));
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
}

SmallVector<Value> KernelBuilder::carry(Value from, Value to, int64_t step, ValueRange inits,
                                        CarryBody body) {
  auto op = scf::ForOp::create(*this, from, to, idx(step), inits);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.getBody());
  scf::YieldOp::create(*this, body(op.getInductionVar(), op.getRegionIterArgs()));
  return SmallVector<Value>(op.getResults());
}

SmallVector<Value> KernelBuilder::carryRolled(Value from, Value to, int64_t step, ValueRange inits,
                                              CarryBody body) {
  SmallVector<Value> results = carry(from, to, step, inits, body);
  auto unroll =
      LLVM::LoopUnrollAttr::get(getContext(), /*disable=*/getBoolAttr(true), /*count=*/{},
                                /*runtimeDisable=*/{}, /*full=*/{}, /*followupUnrolled=*/{},
                                /*followupRemainder=*/{}, /*followupAll=*/{});
  auto annotation = LLVM::LoopAnnotationAttr::get(
      getContext(), /*disableNonforced=*/{}, /*vectorize=*/{}, /*interleave=*/{}, unroll,
      /*unrollAndJam=*/{}, /*licm=*/{}, /*distribute=*/{}, /*pipeline=*/{}, /*peeled=*/{},
      /*unswitch=*/{}, /*mustProgress=*/{}, /*isVectorized=*/{}, /*startLoc=*/{}, /*endLoc=*/{},
      /*parallelAccesses=*/{});
  results.front().getDefiningOp()->setAttr(exec::kLoopAnnotationAttr, annotation);
  return results;
}

void KernelBuilder::whileLoop(Value from, Value to, llvm::function_ref<Value(Value)> body) {
  auto below = [&](OpBuilder &, Location, ValueRange at) {
    Value more = arith::CmpIOp::create(*this, arith::CmpIPredicate::ult, at[0], to);
    scf::ConditionOp::create(*this, more, at);
  };
  auto next = [&](OpBuilder &, Location, ValueRange at) {
    scf::YieldOp::create(*this, body(at[0]));
  };
  scf::WhileOp::create(*this, from.getType(), from, below, next);
}

void KernelBuilder::when(Value condition, llvm::function_ref<void()> body) {
  auto op = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.thenBlock());
  body();
}

void KernelBuilder::either(Value condition, llvm::function_ref<void()> then,
                           llvm::function_ref<void()> otherwise) {
  auto op = scf::IfOp::create(*this, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.thenBlock());
  then();
  setInsertionPointToStart(op.elseBlock());
  otherwise();
}

SmallVector<Value> KernelBuilder::changeWhen(Value condition, ValueRange values,
                                             llvm::function_ref<SmallVector<Value>()> body) {
  auto op = scf::IfOp::create(*this, values.getTypes(), condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.thenBlock());
  scf::YieldOp::create(*this, body());
  setInsertionPointToStart(op.elseBlock());
  scf::YieldOp::create(*this, values);
  return SmallVector<Value>(op.getResults());
}

void KernelBuilder::eachVector(int64_t columns, llvm::function_ref<void(Value, Value)> body) {
  int64_t whole = columns / kLanes * kLanes;
  if (whole)
    loop(idx(0), idx(whole), kLanes, [&](Value column) { body(column, Value()); });
  if (whole != columns)
    body(idx(whole), idx(columns - whole));
}

Value KernelBuilder::eachVector(int64_t columns, Value init,
                                llvm::function_ref<Value(Value, Value, Value)> body) {
  int64_t whole = columns / kLanes * kLanes;
  if (whole)
    init = carry(idx(0), idx(whole), kLanes, init,
                 [&](Value column, ValueRange carried) -> SmallVector<Value> {
                   return {body(column, Value(), carried[0])};
                 })[0];
  return whole == columns ? init : body(idx(whole), idx(columns - whole), init);
}

KernelLibrary::KernelLibrary(ModuleOp module, TargetDescription target)
    : module(module), target(std::move(target)), symbols(module) {}

func::FuncOp KernelLibrary::getOrCreate(exec::KernelAttr identity, ArrayRef<Type> types,
                                        Location loc, Build build, exec::CostAttr cost) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<Type> inputs(2, builder.getIndexType());
  llvm::append_range(inputs, types);
  FunctionType type = builder.getFunctionType(inputs, {});
  func::FuncOp &known = kernels[{identity, type}];
  if (known)
    return known;
  auto kernel = func::FuncOp::create(builder, loc, identity.getBase(), type);
  known = kernel;
  kernel.setPrivate();
  kernel->setAttr(exec::kKernelAttr, identity);
  if (cost)
    kernel->setAttr(exec::kCostAttr, cost);
  // Inserting into the symbol table makes the name unique.
  symbols.insert(kernel);
  builder.setInsertionPointToStart(kernel.addEntryBlock());
  KernelBuilder body(loc, builder, target);
  build(body, kernel.getArguments());
  func::ReturnOp::create(body);
  return kernel;
}

memref::GlobalOp KernelLibrary::getOrCreateTable(StringRef base, DenseElementsAttr values,
                                                 Location loc) {
  memref::GlobalOp &known = tables[values];
  if (known)
    return known;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto type = MemRefType::get(values.getType().getShape(), values.getElementType());
  known = memref::GlobalOp::create(builder, loc, base, builder.getStringAttr("private"), type,
                                   values, /*constant=*/true, builder.getI64IntegerAttr(64));
  symbols.insert(known);
  return known;
}

MemRefType mica::cpu::kernelBufferType(RankedTensorType tensor) {
  bool rows =
      tensor.getRank() >= 2 && tensor.isDynamicDim(0) && !tensor.isDynamicDim(tensor.getRank() - 1);
  if (!rows)
    return MemRefType::get(tensor.getShape(), tensor.getElementType());
  SmallVector<int64_t> strides(tensor.getRank(), 1);
  for (int64_t axis = tensor.getRank() - 2; axis > 0; --axis)
    strides[axis] = strides[axis + 1] * tensor.getDimSize(axis + 1);
  strides[0] = ShapedType::kDynamic;
  return MemRefType::get(
      tensor.getShape(), tensor.getElementType(),
      StridedLayoutAttr::get(tensor.getContext(), ShapedType::kDynamic, strides));
}
