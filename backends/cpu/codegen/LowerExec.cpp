//===- LowerExec.cpp - launches and matmuls as runtime calls --------------===//

#include "backends/cpu/codegen/ModelSymbols.h"
#include "backends/cpu/codegen/Passes.h"
#include "backends/cpu/codegen/RuntimeSlots.h"
#include "backends/runtime/abi/MatmulShape.h"
#include "backends/runtime/abi/ProbeNumbers.h"

#include "ir/Exec/Exec.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace mica::cpu {
#define GEN_PASS_DEF_LOWEREXECPASS
#include "backends/cpu/codegen/Passes.h.inc"
} // namespace mica::cpu

namespace {

using namespace mica;
using mica::cpu::RuntimeCall;
using mica::cpu::RuntimeSlot;
using mica::exec::AllGatherOp;
using mica::exec::AllSliceOp;
using mica::exec::LaunchOp;
using mica::exec::LocalRowsOp;
using mica::exec::MatmulOp;
using mica::exec::ProbeOp;
using mica::exec::ShareRowsOp;

/// The symbol that has the size of the runtime table that the code requires.
constexpr StringLiteral kRuntimeBytes = "mica_runtime_bytes";
/// Symbols that `bench --profile` reads: the task functions, terminated by null; their names, each
/// terminated by a zero byte; for each, the offset of the number of rows in its context (-1: none),
/// and its cost.
constexpr StringLiteral kKernelTasks = "mica_kernel_tasks", kKernelNames = "mica_kernel_names",
                        kKernelCosts = "mica_kernel_costs";

/// How an argument of a kernel is passed: a memref as its pointer and the properties that are
/// dynamic in its type, in the order pointer, offset, sizes, strides; any other argument unchanged.
class Parameter {
public:
  Parameter(const LLVMTypeConverter &converter, Type type) : converter(&converter), type(type) {
    if (auto memref = dyn_cast<MemRefType>(type))
      valid = succeeded(memref.getStridesAndOffset(strides, offset)) && converter.convertType(type);
    else
      valid = converter.convertType(type) && LLVM::isCompatibleType(converter.convertType(type));
  }

  bool isValid() const { return valid; }
  Type getType() const { return type; }
  bool isMemRef() const { return isa<MemRefType>(type); }

  SmallVector<Type> fieldTypes() const {
    if (!isMemRef())
      return {converter->convertType(type)};
    SmallVector<Type> types = {LLVM::LLVMPointerType::get(type.getContext())};
    types.append(openCount(), converter->getIndexType());
    return types;
  }

  /// The fields of `value`, which must have the argument's type.
  SmallVector<Value> unpack(OpBuilder &builder, Location loc, Value value) const {
    Value converted = castTo(builder, loc, value, converter->convertType(type));
    if (!isMemRef())
      return {converted};
    MemRefDescriptor descriptor(converted);
    SmallVector<Value> fields = {descriptor.alignedPtr(builder, loc)};
    if (ShapedType::isDynamic(offset))
      fields.push_back(descriptor.offset(builder, loc));
    for (auto [dim, size] : llvm::enumerate(cast<MemRefType>(type).getShape()))
      if (ShapedType::isDynamic(size))
        fields.push_back(descriptor.size(builder, loc, dim));
    for (auto [dim, stride] : llvm::enumerate(strides))
      if (ShapedType::isDynamic(stride))
        fields.push_back(descriptor.stride(builder, loc, dim));
    return fields;
  }

  /// Rebuilds the argument from its fields.
  Value pack(OpBuilder &builder, Location loc, ValueRange fields) const {
    if (!isMemRef())
      return castTo(builder, loc, fields.front(), type);
    auto memref = cast<MemRefType>(type);
    auto next = fields.begin();
    auto descriptor = MemRefDescriptor::poison(builder, loc, converter->convertType(type));
    descriptor.setAllocatedPtr(builder, loc, *next);
    descriptor.setAlignedPtr(builder, loc, *next++);
    auto valueOf = [&](int64_t constant) -> Value {
      if (ShapedType::isDynamic(constant))
        return *next++;
      return LLVM::ConstantOp::create(builder, loc, converter->getIndexType(),
                                      builder.getIndexAttr(constant));
    };
    descriptor.setOffset(builder, loc, valueOf(offset));
    for (auto [dim, size] : llvm::enumerate(memref.getShape()))
      descriptor.setSize(builder, loc, dim, valueOf(size));
    for (auto [dim, stride] : llvm::enumerate(strides))
      descriptor.setStride(builder, loc, dim, valueOf(stride));
    return castTo(builder, loc, descriptor, type);
  }

  static Value castTo(OpBuilder &builder, Location loc, Value value, Type wanted) {
    if (value.getType() == wanted)
      return value;
    return UnrealizedConversionCastOp::create(builder, loc, wanted, value).getResult(0);
  }

  /// The index of the field that holds the first extent of a memref, if that is dynamic.
  std::optional<size_t> rowsField() const {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref || memref.getRank() == 0 || !memref.isDynamicDim(0))
      return std::nullopt;
    return ShapedType::isDynamic(offset) ? 2 : 1;
  }

private:
  size_t openCount() const {
    return ShapedType::isDynamic(offset) +
           llvm::count_if(cast<MemRefType>(type).getShape(), ShapedType::isDynamic) +
           llvm::count_if(strides, ShapedType::isDynamic);
  }

  const LLVMTypeConverter *converter;
  Type type;
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  bool valid = false;
};

/// A lowered kernel.
struct Kernel {
  SmallVector<Parameter> parameters; ///< except begin and end
  LLVM::LLVMStructType context;      ///< all fields of all parameters
  LLVM::LLVMFuncOp function;         ///< (begin, end, fields...)
  LLVM::LLVMFuncOp task;             ///< (context, begin, end)
  exec::CostAttr cost;               ///< may be null
  std::optional<size_t> rows;        ///< index of the field with the number of rows of a launch
  bool rowsOfOutput = false;
};

/// The lowering of one module.
class ExecLowering {
public:
  explicit ExecLowering(ModuleOp module)
      : module(module), converter(module.getContext()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())), i64(converter.getIndexType()),
        slots(mica::cpu::getRuntimeSlots(module.getContext())) {}

  LogicalResult run() {
    SmallVector<LaunchOp> launches;
    module.walk([&](LaunchOp launch) { launches.push_back(launch); });
    for (LaunchOp launch : launches)
      if (failed(makeKernel(launch)))
        return failure();
    if (failed(passTable()))
      return failure();
    DenseMap<Operation *, Value> contexts = makeContexts(launches);
    for (LaunchOp launch : launches)
      if (failed(lower(launch, contexts)))
        return failure();
    if (failed(lowerAll<MatmulOp>()) || failed(lowerAll<ProbeOp>()) ||
        failed(lowerAll<AllGatherOp>()) || failed(lowerAll<AllSliceOp>()) ||
        failed(lowerAll<LocalRowsOp>()) || failed(lowerAll<ShareRowsOp>()))
      return failure();
    if (!order.empty())
      makeTables();
    if (module.lookupSymbol<func::FuncOp>(mica::cpu::kForwardSymbol))
      makeRuntimeBytes();
    return success();
  }

private:
  LogicalResult makeKernel(LaunchOp launch);
  LogicalResult passTable();
  void callRuntime(OpBuilder &builder, Operation *op, RuntimeCall call, ArrayRef<Value> arguments);
  void makeTables();
  void makeRuntimeBytes();
  int64_t rowsOffset(const Kernel &kernel) const;
  LLVM::LLVMFuncOp convertKernel(func::FuncOp function, const Kernel &kernel);
  LLVM::LLVMFuncOp makeTask(StringRef name, Location loc, const Kernel &kernel);
  DenseMap<Operation *, Value> makeContexts(ArrayRef<LaunchOp> launches);
  LogicalResult lower(LaunchOp launch, const DenseMap<Operation *, Value> &contexts);
  LogicalResult lower(MatmulOp product);
  LogicalResult lower(ProbeOp probe);
  LogicalResult lower(AllGatherOp op);
  LogicalResult lower(AllSliceOp op);
  LogicalResult lower(LocalRowsOp op);
  LogicalResult lower(ShareRowsOp op);
  template <typename Op> LogicalResult lowerAll() {
    SmallVector<Op> ops;
    module.walk([&](Op op) { ops.push_back(op); });
    return failure(llvm::any_of(ops, [&](Op op) { return failed(lower(op)); }));
  }
  /// Rows in memory, all numbers as operands.
  struct RowsInMemory {
    Value address, stride, bytes, count; ///< stride and bytes of a row in bytes
  };
  FailureOr<RowsInMemory> rowsOf(OpBuilder &builder, Operation *op, Value rows);
  Value constant(OpBuilder &builder, Location loc, Type type, int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, type, builder.getIntegerAttr(type, value));
  }

  ModuleOp module;
  LLVMTypeConverter converter;
  Type pointer, i64;
  llvm::StringMap<Kernel> kernels;
  SmallVector<StringRef> order; ///< names of the kernels in order of creation
  SmallVector<RuntimeSlot> slots;
  DenseMap<Operation *, Value> tables; ///< runtime tables, by function
  int64_t probeCount = 0;
};

LogicalResult ExecLowering::makeKernel(LaunchOp launch) {
  if (launch->getNumResults() != 0)
    return launch.emitError("launches on tensors: it was not bufferized");
  StringRef name = launch.getKernel();
  if (kernels.contains(name))
    return success();
  auto function =
      SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(launch, launch.getKernelAttr());
  if (!function || function.isExternal())
    return launch.emitError() << "launches @" << name << ", which has no body";
  if (function.getNumArguments() < 2 || !function.getArgument(0).getType().isIndex() ||
      !function.getArgument(1).getType().isIndex())
    return function.emitError() << "kernel @" << name
                                << " does not begin with (begin: index, end: index)";
  Kernel kernel;
  kernel.cost = function->getAttrOfType<exec::CostAttr>(exec::kCostAttr);
  SmallVector<Type> fields;
  for (Type type : function.getArgumentTypes().drop_front(2)) {
    kernel.parameters.emplace_back(converter, type);
    const Parameter &parameter = kernel.parameters.back();
    if (!parameter.isValid())
      return function.emitError() << "kernel @" << name << " takes " << type
                                  << ", which no program can pass";
    // The number of rows is that of the first output that has rows, else of the first input.
    bool output = kernel.parameters.size() > launch.getInputs().size();
    if (std::optional<size_t> rows = parameter.rowsField();
        rows && (!kernel.rows || (output && !kernel.rowsOfOutput))) {
      kernel.rows = fields.size() + *rows;
      kernel.rowsOfOutput = output;
    }
    llvm::append_range(fields, parameter.fieldTypes());
  }
  kernel.context = LLVM::LLVMStructType::getLiteral(module.getContext(), fields);
  kernel.function = convertKernel(function, kernel);
  kernel.task = makeTask(name, kernel.function.getLoc(), kernel);
  order.push_back(kernels.insert({name, std::move(kernel)}).first->getKey());
  return success();
}

/// Appends the runtime table to the arguments of functions that call the runtime, of their callers
/// and of the entry function. Kernels do not get it, because they must not call the runtime.
LogicalResult ExecLowering::passTable() {
  SmallVector<func::FuncOp> users;
  auto add = [&](func::FuncOp function) {
    if (tables.try_emplace(function).second)
      users.push_back(function);
  };
  if (auto entry = module.lookupSymbol<func::FuncOp>(mica::cpu::kForwardSymbol))
    add(entry);
  llvm::StringMap<SmallVector<func::CallOp>> calls;
  bool ok = true;
  module.walk([&](Operation *op) {
    if (auto call = dyn_cast<func::CallOp>(op))
      calls[call.getCallee()].push_back(call);
    if (!op->hasTrait<exec::CallsRuntime>())
      return;
    if (auto function = op->getParentOfType<func::FuncOp>())
      add(function);
    else
      ok = succeeded(op->emitError("calls the runtime from a kernel"));
  });
  if (!ok)
    return failure();
  for (size_t next = 0; next < users.size(); ++next)
    for (func::CallOp call : calls[users[next].getName()]) {
      if (auto caller = call->getParentOfType<func::FuncOp>())
        add(caller);
      else
        return call.emitError() << "calls @" << call.getCallee()
                                << ", which calls the runtime, from a kernel";
    }
  for (func::FuncOp function : users) {
    if (failed(function.insertArgument(function.getNumArguments(), pointer, {}, function.getLoc())))
      return failure();
    tables[function] = function.getArguments().back();
  }
  for (func::FuncOp function : users)
    for (func::CallOp call : calls[function.getName()])
      call.getOperandsMutable().append(tables.at(call->getParentOfType<func::FuncOp>()));
  return success();
}

/// Calls a function of the runtime table that the function containing `op` receives.
void ExecLowering::callRuntime(OpBuilder &builder, Operation *op, RuntimeCall call,
                               ArrayRef<Value> arguments) {
  Location loc = op->getLoc();
  Value table = tables.at(op->getParentOfType<func::FuncOp>());
  auto load = [&](int32_t word) -> Value {
    Value place = LLVM::GEPOp::create(builder, loc, pointer, pointer, table, LLVM::GEPArg(word));
    return LLVM::LoadOp::create(builder, loc, pointer, place);
  };
  const RuntimeSlot &slot = slots[static_cast<unsigned>(call)];
  SmallVector<Value> operands = {load(slot.word), load(mica::cpu::kRuntimeWord)};
  llvm::append_range(operands, arguments);
  LLVM::CallOp::create(builder, loc, slot.type, operands);
}

/// The byte offset of the number of rows in the context, or -1 if it has none.
int64_t ExecLowering::rowsOffset(const Kernel &kernel) const {
  if (!kernel.rows)
    return -1;
  DataLayout layout(module);
  uint64_t offset = 0;
  for (auto [index, field] : llvm::enumerate(kernel.context.getBody())) {
    offset = llvm::alignTo(offset, layout.getTypeABIAlignment(field));
    if (index == *kernel.rows)
      break;
    offset += layout.getTypeSize(field);
  }
  return static_cast<int64_t>(offset);
}

/// Creates tables for profiling tools; the code does not use them.
void ExecLowering::makeTables() {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  Location loc = module.getLoc();
  std::string names;
  SmallVector<int64_t> costs;
  for (StringRef name : order) {
    const Kernel &kernel = kernels.find(name)->second;
    names += (name + Twine('\0')).str();
    costs.push_back(rowsOffset(kernel));
#define MICA_KERNEL_COST(name, Getter) costs.push_back(kernel.cost ? kernel.cost.get##Getter() : 0);
#include "backends/runtime/abi/KernelCost.def"
#undef MICA_KERNEL_COST
  }
  auto table = [&](StringRef name, Type type, Attribute value) {
    return LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::External,
                                  name, value);
  };
  auto count = static_cast<int64_t>(order.size()),
       columns = static_cast<int64_t>(costs.size()) / count;
  table(kKernelNames, LLVM::LLVMArrayType::get(builder.getI8Type(), names.size()),
        builder.getStringAttr(names));
  table(kKernelCosts, LLVM::LLVMArrayType::get(LLVM::LLVMArrayType::get(i64, columns), count),
        DenseElementsAttr::get(RankedTensorType::get({count, columns}, i64), ArrayRef(costs)));
  auto type = LLVM::LLVMArrayType::get(pointer, count + 1);
  LLVM::GlobalOp tasks = table(kKernelTasks, type, Attribute());
  builder.createBlock(&tasks.getInitializerRegion());
  Value array = LLVM::ZeroOp::create(builder, loc, type);
  for (auto [index, name] : llvm::enumerate(order)) {
    Value task = LLVM::AddressOfOp::create(builder, loc, kernels.find(name)->second.task);
    array = LLVM::InsertValueOp::create(builder, loc, array, task, static_cast<int64_t>(index));
  }
  LLVM::ReturnOp::create(builder, loc, array);
}

void ExecLowering::makeRuntimeBytes() {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  LLVM::GlobalOp::create(builder, module.getLoc(), i64, /*isConstant=*/true,
                         LLVM::Linkage::External, kRuntimeBytes,
                         builder.getI64IntegerAttr(mica::cpu::kRuntimeTableBytes));
}

/// func.func @k(begin, end, memrefs) => llvm.func @k(begin, end, fields), the memrefs are rebuilt
/// in its entry block.
LLVM::LLVMFuncOp ExecLowering::convertKernel(func::FuncOp function, const Kernel &kernel) {
  OpBuilder builder(function);
  Location loc = function.getLoc();
  SmallVector<Type> types = {i64, i64};
  llvm::append_range(types, kernel.context.getBody());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(module.getContext()), types);
  std::string name = function.getName().str();
  auto converted = LLVM::LLVMFuncOp::create(builder, loc, name, type, LLVM::Linkage::Internal);
  converted.getBody().takeBody(function.getBody());

  Block &entry = converted.getBody().front();
  unsigned oldCount = entry.getNumArguments();
  SmallVector<Value> added;
  for (Type argument : types)
    added.push_back(entry.addArgument(argument, loc));
  builder.setInsertionPointToStart(&entry);
  for (unsigned bound : {0u, 1u})
    entry.getArgument(bound).replaceAllUsesWith(
        Parameter::castTo(builder, loc, added[bound], builder.getIndexType()));
  unsigned next = 2;
  for (auto [index, parameter] : llvm::enumerate(kernel.parameters)) {
    unsigned count = parameter.fieldTypes().size();
    ValueRange fields = ValueRange(added).slice(next, count);
    entry.getArgument(index + 2).replaceAllUsesWith(parameter.pack(builder, loc, fields));
    if (parameter.isMemRef() &&
        function.getArgAttr(index + 2, LLVM::LLVMDialect::getNoAliasAttrName()))
      converted.setArgAttr(next, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    next += count;
  }
  entry.eraseArguments(0, oldCount);
  converted.walk([](func::ReturnOp op) {
    OpBuilder atReturn(op);
    LLVM::ReturnOp::create(atReturn, op.getLoc(), ValueRange());
    op.erase();
  });
  function.erase();
  return converted;
}

/// llvm.func @k.task(context, begin, end) { fields = load context; call @k(begin, end, fields) }
LLVM::LLVMFuncOp ExecLowering::makeTask(StringRef name, Location loc, const Kernel &kernel) {
  OpBuilder builder(kernel.function);
  builder.setInsertionPointAfter(kernel.function);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(module.getContext()),
                                          {pointer, i64, i64});
  auto task =
      LLVM::LLVMFuncOp::create(builder, loc, (name + ".task").str(), type, LLVM::Linkage::Internal);
  Block *entry = task.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  SmallVector<Value> operands = {entry->getArgument(1), entry->getArgument(2)};
  for (auto [index, field] : llvm::enumerate(kernel.context.getBody())) {
    Value slot = LLVM::GEPOp::create(builder, loc, pointer, kernel.context, entry->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{0, int32_t(index)});
    operands.push_back(LLVM::LoadOp::create(builder, loc, field, slot));
  }
  LLVM::CallOp::create(builder, loc, kernel.function, operands);
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return task;
}

/// Allocates one context per function with launches, large enough for each of them.
DenseMap<Operation *, Value> ExecLowering::makeContexts(ArrayRef<LaunchOp> launches) {
  llvm::MapVector<Operation *, int64_t> words;
  for (LaunchOp launch : launches) {
    // Every field is a pointer, an index or a scalar: at most eight bytes.
    int64_t fields = kernels.find(launch.getKernel())->second.context.getBody().size();
    int64_t &size = words[launch->getParentOfType<FunctionOpInterface>()];
    size = std::max(size, fields);
  }
  DenseMap<Operation *, Value> contexts;
  for (auto [function, size] : words) {
    OpBuilder builder =
        OpBuilder::atBlockBegin(&cast<FunctionOpInterface>(function).getFunctionBody().front());
    Location loc = function->getLoc();
    Value one = constant(builder, loc, i64, 1);
    auto words = LLVM::LLVMArrayType::get(i64, std::max<int64_t>(size, 1));
    contexts[function] =
        LLVM::AllocaOp::create(builder, loc, pointer, words, one, /*alignment=*/16);
  }
  return contexts;
}

LogicalResult ExecLowering::lower(LaunchOp launch, const DenseMap<Operation *, Value> &contexts) {
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  const Kernel &kernel = kernels.find(launch.getKernel())->second;
  SmallVector<Value> operands(launch.getInputs());
  llvm::append_range(operands, launch.getOutputs());
  SmallVector<Value> fields;
  for (auto [operand, parameter] : llvm::zip_equal(operands, kernel.parameters)) {
    Value value = operand;
    Type type = parameter.getType();
    if (value.getType() != type) {
      if (!memref::CastOp::areCastCompatible(value.getType(), type))
        return launch.emitError() << "passes " << value.getType() << " where @"
                                  << launch.getKernel() << " takes " << type;
      value = memref::CastOp::create(builder, loc, type, value);
    }
    llvm::append_range(fields, parameter.unpack(builder, loc, value));
  }
  Value tasks = Parameter::castTo(builder, loc, launch.getTasks(), i64);
  Value context = contexts.lookup(launch->getParentOfType<FunctionOpInterface>());
  for (auto [index, field] : llvm::enumerate(fields)) {
    Value slot = LLVM::GEPOp::create(builder, loc, pointer, kernel.context, context,
                                     ArrayRef<LLVM::GEPArg>{0, int32_t(index)});
    LLVM::StoreOp::create(builder, loc, field, slot);
  }
  Value task = LLVM::AddressOfOp::create(builder, loc, kernel.task);
  callRuntime(builder, launch, RuntimeCall::parallelFor, {task, context, tasks});
  launch.erase();
  return success();
}

/// exec.matmul => runtime.matmul(x, weight, output, rows, n, k, stride of x, stride of output,
/// format, accumulate)
LogicalResult ExecLowering::lower(MatmulOp product) {
  OpBuilder builder(product);
  Location loc = product.getLoc();
  auto bufferOf = [&](Value value) -> FailureOr<MemRefDescriptor> {
    auto type = dyn_cast<MemRefType>(value.getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    if (!type || failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
      return product.emitError() << "works on " << value.getType()
                                 << ", whose rows are not contiguous in memory";
    return MemRefDescriptor(Parameter::castTo(builder, loc, value, converter.convertType(type)));
  };
  FailureOr<MemRefDescriptor> x = bufferOf(product.getX()), weight = bufferOf(product.getWeight()),
                              output = bufferOf(product.getOutput());
  if (failed(x) || failed(weight) || failed(output))
    return failure();
  auto weightType = cast<MemRefType>(product.getWeight().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)weightType.getStridesAndOffset(strides, offset);
  if (strides != computeStrides(weightType.getShape()))
    return product.emitError() << "reads a weight that is not contiguous in memory: " << weightType;
  Type i32 = builder.getI32Type();
  auto address = [&](MemRefDescriptor &buffer, Value value) {
    return buffer.bufferPtr(builder, loc, converter, cast<MemRefType>(value.getType()));
  };
  Type element = weightType.getElementType();
  auto format =
      static_cast<int32_t>(element.isBF16() ? rt::MatmulFormat::Bf16 : rt::MatmulFormat::F32);
  SmallVector<Value> arguments = {address(*x, product.getX()),
                                  address(*weight, product.getWeight()),
                                  address(*output, product.getOutput()),
                                  x->size(builder, loc, 0),
                                  constant(builder, loc, i64, product.getN()),
                                  constant(builder, loc, i64, product.getK()),
                                  x->stride(builder, loc, 0),
                                  output->stride(builder, loc, 0),
                                  constant(builder, loc, i32, format),
                                  constant(builder, loc, i32, product.getAccumulate())};
  callRuntime(builder, product, RuntimeCall::matmul, arguments);
  product.erase();
  return success();
}

/// exec.probe => runtime.probe(name, its length, layer, x, rows, numbers of a row, stride of rows,
/// kind: see ProbeNumbers)
LogicalResult ExecLowering::lower(ProbeOp probe) {
  OpBuilder builder(probe);
  Location loc = probe.getLoc();
  auto type = dyn_cast<MemRefType>(probe.getX().getType());
  SmallVector<int64_t> strides;
  int64_t offset, ofRow = 1;
  bool contiguous = type && succeeded(type.getStridesAndOffset(strides, offset));
  for (int64_t axis = contiguous ? type.getRank() - 1 : 0; axis > 0; --axis) {
    contiguous &= strides[axis] == ofRow;
    ofRow *= type.getDimSize(axis);
  }
  if (!contiguous)
    return probe.emitError() << "records rows of " << probe.getX().getType()
                             << ", which are not contiguous in memory";
  MemRefDescriptor x(Parameter::castTo(builder, loc, probe.getX(), converter.convertType(type)));
  Type i32 = builder.getI32Type(), element = type.getElementType();
  StringRef name = probe.getName();
  rt::ProbeNumbers numbers = element.isBF16()        ? rt::ProbeNumbers::BF16
                             : element.isInteger(32) ? rt::ProbeNumbers::I32
                                                     : rt::ProbeNumbers::F32;
  std::string symbol = ("probe." + Twine(probeCount++)).str();
  Value text = LLVM::createGlobalString(loc, builder, symbol, name, LLVM::Linkage::Internal);
  callRuntime(builder, probe, RuntimeCall::probe,
              {text, constant(builder, loc, i64, static_cast<int64_t>(name.size())),
               Parameter::castTo(builder, loc, probe.getLayer(), i64),
               x.bufferPtr(builder, loc, converter, type), x.size(builder, loc, 0),
               constant(builder, loc, i64, ofRow), x.stride(builder, loc, 0),
               constant(builder, loc, i32, static_cast<int32_t>(numbers))});
  probe.erase();
  return success();
}

/// Rows [T, C], heads [T, H, D], of which each is a row, or numbers [T].
FailureOr<ExecLowering::RowsInMemory> ExecLowering::rowsOf(OpBuilder &builder, Operation *op,
                                                           Value rows) {
  Location loc = op->getLoc();
  auto type = dyn_cast<MemRefType>(rows.getType());
  SmallVector<int64_t> strides;
  int64_t offset, perRow = 1;
  bool isRegular = type && succeeded(type.getStridesAndOffset(strides, offset)) &&
                   strides.back() == 1 && type.getRank() <= 3;
  if (isRegular && type.getRank() == 3) {
    perRow = type.getDimSize(1);
    isRegular = strides[0] == perRow * strides[1];
  }
  if (!isRegular)
    return op->emitError() << "works on " << rows.getType() << ", whose rows have no common stride";
  MemRefDescriptor buffer(Parameter::castTo(builder, loc, rows, converter.convertType(type)));
  int64_t size = type.getElementTypeBitWidth() / 8,
          columns = type.getRank() == 1 ? 1 : type.getShape().back();
  auto times = [&](Value value, int64_t factor) -> Value {
    return LLVM::MulOp::create(builder, loc, value, constant(builder, loc, i64, factor));
  };
  unsigned last = type.getRank() == 3 ? 1 : 0;
  return RowsInMemory{buffer.bufferPtr(builder, loc, converter, type),
                      times(buffer.stride(builder, loc, last), size),
                      constant(builder, loc, i64, columns * size),
                      times(buffer.size(builder, loc, 0), perRow)};
}

/// exec.all_gather => runtime.allGather(x, its stride and bytes, output, its stride and bytes,
/// rows)
LogicalResult ExecLowering::lower(AllGatherOp op) {
  OpBuilder builder(op);
  FailureOr<RowsInMemory> part = rowsOf(builder, op, op.getX()),
                          whole = rowsOf(builder, op, op.getOutput());
  if (failed(part) || failed(whole))
    return failure();
  callRuntime(builder, op, RuntimeCall::allGather,
              {part->address, part->stride, part->bytes, whole->address, whole->stride,
               whole->bytes, whole->count});
  op.erase();
  return success();
}

/// exec.all_slice => runtime.allSlice(x, its stride and bytes, output, its stride and bytes, rows)
LogicalResult ExecLowering::lower(AllSliceOp op) {
  OpBuilder builder(op);
  FailureOr<RowsInMemory> whole = rowsOf(builder, op, op.getX()),
                          part = rowsOf(builder, op, op.getOutput());
  if (failed(part) || failed(whole))
    return failure();
  callRuntime(builder, op, RuntimeCall::allSlice,
              {whole->address, whole->stride, whole->bytes, part->address, part->stride,
               part->bytes, part->count});
  op.erase();
  return success();
}

/// exec.local_rows => runtime.localRows(x, output, rows, n)
LogicalResult ExecLowering::lower(LocalRowsOp op) {
  OpBuilder builder(op);
  FailureOr<RowsInMemory> indices = rowsOf(builder, op, op.getX()),
                          local = rowsOf(builder, op, op.getOutput());
  if (failed(indices) || failed(local))
    return failure();
  callRuntime(builder, op, RuntimeCall::localRows,
              {indices->address, local->address, indices->count,
               constant(builder, op.getLoc(), i64, static_cast<int64_t>(op.getN()))});
  op.erase();
  return success();
}

/// exec.share_rows => runtime.shareRows(x, output, its stride and bytes, rows, n)
LogicalResult ExecLowering::lower(ShareRowsOp op) {
  OpBuilder builder(op);
  FailureOr<RowsInMemory> indices = rowsOf(builder, op, op.getX()),
                          rows = rowsOf(builder, op, op.getOutput());
  if (failed(indices) || failed(rows))
    return failure();
  callRuntime(builder, op, RuntimeCall::shareRows,
              {indices->address, rows->address, rows->stride, rows->bytes, rows->count,
               constant(builder, op.getLoc(), i64, static_cast<int64_t>(op.getN()))});
  op.erase();
  return success();
}

struct LowerExec : mica::cpu::impl::LowerExecPassBase<LowerExec> {
  void runOnOperation() override {
    if (failed(ExecLowering(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace
