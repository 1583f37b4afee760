//===- KernelHarness.cpp - mica ops, interpreted and compiled -------------===//

#include "tests/unit/backends/cpu/lowering/KernelHarness.h"

#include "backends/cpu/codegen/Pipeline.h"
#include "backends/cpu/dispatch/Passes.h"
#include "backends/cpu/driver/Compiler.h"
#include "backends/cpu/lowering/Passes.h"
#include "backends/cpu/lowering/Pipeline.h"
#include "backends/cpu/pack/PackWeights.h"
#include "ir/Mica/Diagnostics.h"
#include "ir/Mica/EntrySignature.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace mica::test {

/// The alignment of weights and memory in programs.
static constexpr size_t kProgramAlignment = 64;

static auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };

//===- Calls --------------------------------------------------------------===//

/// A memref descriptor: allocated, aligned, offset, sizes, strides.
static std::vector<int64_t> describe(void *data, ArrayRef<int64_t> shape) {
  auto address = reinterpret_cast<int64_t>(data);
  std::vector<int64_t> descriptor{address, address, 0};
  llvm::append_range(descriptor, shape);
  for (size_t axis = 0; axis < shape.size(); ++axis)
    descriptor.push_back(ShapedType::getNumElements(shape.drop_front(axis + 1)));
  return descriptor;
}

KernelCall::KernelCall(const LoadedModel &model, size_t descriptors)
    : model(model), unused(16), pointers(descriptors, unused.data()) {}

KernelCall::Buffer &KernelCall::add(size_t place, StringRef name, ArrayRef<int64_t> shape,
                                    size_t bytes, size_t alignment) {
  GuardedMemory memory(bytes, alignment);
  std::vector<int64_t> descriptor = describe(memory.data(), shape);
  buffers.push_back(std::make_unique<Buffer>(Buffer{std::move(memory),
                                                    SmallVector<int64_t>(shape),
                                                    std::move(descriptor),
                                                    name.str(),
                                                    {},
                                                    {},
                                                    {}}));
  pointers[place] = buffers.back()->descriptor.data();
  return *buffers.back();
}

SmallVector<interp::Value> KernelCall::getResults() const {
  SmallVector<interp::Value> results;
  for (auto [element, buffer] : outputs)
    results.push_back(loadTensor(element, buffer->shape, buffer->memory.bytes()));
  for (const Buffer *buffer : caches) {
    if (!storesPositions(buffer->type)) {
      results.push_back(buffer->cache);
      continue;
    }
    interp::Value cache = buffer->cache.clone();
    loadCache(*cache.getCache()->cache, buffer->type, buffer->memory.bytes());
    results.push_back(cache);
  }
  return results;
}

void KernelCall::continueFrom(const KernelCall &other) {
  for (auto [cache, before] : llvm::zip_equal(caches, other.caches))
    llvm::copy(before->memory.bytes(), cache->memory.bytes().begin());
}

std::string KernelCall::findDamage() const {
  for (const auto &buffer : buffers) {
    if (!buffer->memory.guardsAreIntact())
      return "something was written beside " + buffer->name;
    if (ArrayRef<uint8_t>(buffer->given) != buffer->memory.bytes().take_front(buffer->given.size()))
      return "something was written into " + buffer->name;
    if (!buffer->type || !storesPositions(buffer->type))
      continue;
    // Padding is zero and remains so: the expected memory depends only on the elements.
    interp::Value cache = buffer->cache.clone();
    loadCache(*cache.getCache()->cache, buffer->type, buffer->memory.bytes());
    std::vector<uint8_t> clean(buffer->memory.bytes().size());
    storeCache(*cache.getCache()->cache, buffer->type, clean);
    if (ArrayRef<uint8_t>(clean) != ArrayRef<uint8_t>(buffer->memory.bytes()))
      return "something was written into the padding of " + buffer->name;
  }
  return {};
}

KernelCall KernelModule::prepare(StringRef function, ArrayRef<interp::Value> arguments) const {
  const Signature &signature = signatures.find(function)->second;
  KernelCall call(*model, descriptors);
  Type i32 = IntegerType::get(context.get(), 32);
  interp::Tensor number = interp::Tensor::zeros(i32, {1});
  number.ints[0] = signature.number;
  storeTensor(number, call.add(0, "the number of the function", {1}, 4, 4).memory.bytes());

  size_t place = signature.firstArgument;
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    std::string name = "argument " + std::to_string(index);
    if (const interp::Tensor *tensor = argument.getTensor()) {
      size_t bytes = bytesOf(tensor->elementType, tensor->shape);
      KernelCall::Buffer &buffer = call.add(place++, name, tensor->shape, bytes, 4);
      storeTensor(*tensor, buffer.memory.bytes());
      buffer.given = buffer.memory.bytes();
      continue;
    }
    const interp::Cache &cache = *argument.getCache()->cache;
    auto type = cast<SequenceState>(signature.arguments[index]);
    SmallVector<int64_t> shape = physicalShapeOf(cache, type);
    KernelCall::Buffer &buffer =
        call.add(place++, name, shape, bytesOf(type.getElementType(), shape), kProgramAlignment);
    storeCache(cache, type, buffer.memory.bytes());
    buffer.cache = argument;
    buffer.type = type;
    if (call.caches.size() < signature.caches)
      call.caches.push_back(&buffer);
  }

  int64_t rows = arguments.front().getTensor()->shape[0];
  auto addOutput = [&](Type type, size_t at) {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape(tensor.getShape());
    shape[0] = rows;
    if (auto quantized = dyn_cast<QuantizedElementType>(tensor.getElementType()))
      shape.back() = quantized.getPhysicalType(tensor).getShape().back();
    size_t bytes = bytesOf(tensor.getElementType(), shape);
    std::string name = "result " + std::to_string(call.outputs.size());
    call.outputs.push_back({tensor.getElementType(), &call.add(at, name, shape, bytes, 4)});
  };
  // The entry takes the first result after all other arguments, like logits in programs.
  addOutput(signature.tensors.front(), place + signature.tensors.size() + 1);
  for (Type type : ArrayRef(signature.tensors).drop_front())
    addOutput(type, place++);
  int64_t scratch = rows * scratchPerRow + scratchFixed;
  call.pointers[place++] = const_cast<int64_t *>(weightsDescriptor.data());
  call.add(place++, "scratch memory", scratch, scratch, kProgramAlignment);
  return call;
}

//===- Compilation --------------------------------------------------------===//

llvm::Error KernelModule::runPasses(StringRef goal, llvm::function_ref<void(OpPassManager &)> add) {
  FirstDiagnostic diagnostic(context.get());
  PassManager pm(context.get());
  add(pm);
  if (failed(pm.run(*module)))
    return llvm::createStringError(diagnostic.place("the text") + ": " +
                                   diagnostic.message("the passes to " + goal.str() + " fail"));
  return llvm::Error::success();
}

/// Makes every function an entry, which keeps its caches and returns its first result as logits.
static void giveRoles(func::FuncOp function) {
  EntrySignature signature(function);
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (isa<SequenceState>(type))
      signature.setArgumentRole(index, EntryRole::Cache);
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    if (isa<SequenceState>(type))
      signature.setResultRole(index, EntryRole::Cache);
  signature.setResultRole(0, EntryRole::Logits);
}

/// Matmuls use generated kernels unless the text says otherwise. The contents of tensor arguments
/// are not changed, so that a test detects stray writes.
llvm::Error KernelModule::reachKernels() {
  Builder builder(context.get());
  auto constant = builder.getDictionaryAttr(builder.getNamedAttr(
      bufferization::BufferizationDialect::kWritableAttrName, builder.getBoolAttr(false)));
  for (auto function : module->getOps<func::FuncOp>()) {
    SmallVector<DictionaryAttr> attributes;
    for (Type type : function.getArgumentTypes())
      attributes.push_back(isTensor(type) ? constant : builder.getDictionaryAttr({}));
    function.setAllArgAttrs(attributes);
    giveRoles(function);
  }
  return runPasses("stage `kernels`", [](OpPassManager &pm) {
    cpu::SelectKernelsOptions generated;
    generated.minWork = std::numeric_limits<int64_t>::max();
    pm.addNestedPass<func::FuncOp>(cpu::createSelectKernels(generated));
    pm.addPass(cpu::createAssignLayouts());
  });
}

void KernelModule::recordSignatures() {
  for (auto function : module->getOps<func::FuncOp>()) {
    auto tensors = llvm::filter_to_vector(function.getResultTypes(), isTensor);
    size_t caches = function.getNumResults() - tensors.size();
    Signature signature{static_cast<int64_t>(signatures.size()), descriptors,
                        SmallVector<Type>(function.getArgumentTypes()), tensors, caches};
    descriptors += function.getNumArguments() + tensors.size() - 1 + cpu::kEntryArguments;
    signatures.try_emplace(function.getSymName(), std::move(signature));
  }
}

/// An entry stores its first result in its last argument. All other tensor results become arguments
/// as well.
static void returnThroughArguments(func::FuncOp function) {
  auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  OpBuilder builder(ret);
  SmallVector<Value> kept{ret.getOperand(0)};
  for (Value result : ret.getOperands().drop_front()) {
    auto tensor = dyn_cast<RankedTensorType>(result.getType());
    if (!tensor) {
      kept.push_back(result);
      continue;
    }
    (void)function.insertArgument(function.getNumArguments(),
                                  MemRefType::get(tensor.getShape(), tensor.getElementType()), {},
                                  function.getLoc());
    bufferization::MaterializeInDestinationOp::create(builder, ret.getLoc(), Type(), result,
                                                      function.getArguments().back(),
                                                      /*restrict=*/true, /*writable=*/true);
  }
  ret->setOperands(kept);
  function.setType(
      builder.getFunctionType(function.getArgumentTypes(), ret.getOperands().getTypes()));
}

/// A single entry that calls the function whose number is in its first argument: the code of a
/// program has one entry, and this one has functions of many types.
static void addDispatcher(ModuleOp module) {
  auto functions =
      llvm::to_vector(llvm::make_filter_range(module.getOps<func::FuncOp>(), cpu::isEntry));
  Location loc = module.getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SmallVector<Type> types{MemRefType::get(ShapedType::kDynamic, builder.getI32Type())};
  for (func::FuncOp function : functions)
    llvm::append_range(types, function.getArgumentTypes());
  auto entry = func::FuncOp::create(builder, loc, "entry", builder.getFunctionType(types, {}));
  EntrySignature(entry).setArgumentRole(0, EntryRole::Tokens);
  builder.setInsertionPointToStart(entry.addEntryBlock());
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value number = memref::LoadOp::create(builder, loc, entry.getArgument(0), zero);
  number = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), number);
  auto numbers = llvm::to_vector(llvm::seq<int64_t>(functions.size()));
  auto choice =
      scf::IndexSwitchOp::create(builder, loc, TypeRange(), number, numbers, numbers.size());
  unsigned first = 1;
  for (auto [function, region] : llvm::zip_equal(functions, choice.getCaseRegions())) {
    builder.setInsertionPointToStart(&region.emplaceBlock());
    ValueRange arguments = entry.getArguments().slice(first, function.getNumArguments());
    func::CallOp::create(builder, loc, function, arguments);
    scf::YieldOp::create(builder, loc);
    EntrySignature(function).eraseRoles();
    function.setPrivate();
    // Called, like functions of layers in a program, so that kernels are not found by their names.
    function->setAttr("passthrough", builder.getStrArrayAttr({"noinline"}));
    first += function.getNumArguments();
  }
  builder.setInsertionPointToStart(&choice.getDefaultRegion().emplaceBlock());
  scf::YieldOp::create(builder, loc);
  builder.setInsertionPointToEnd(&entry.getBody().front());
  func::ReturnOp::create(builder, loc);
}

llvm::Error KernelModule::reachLoops(const cpu::TargetDescription &target) {
  cpu::setTarget(*module, target);
  for (auto function : module->getOps<func::FuncOp>())
    returnThroughArguments(function);
  if (llvm::Error error = runPasses("stage `loops`", cpu::buildLoopsPipeline))
    return error;
  auto number = [&](StringRef name) {
    return (*module)->getAttrOfType<IntegerAttr>(name).getInt();
  };
  scratchPerRow = number(cpu::kScratchPerRowAttr);
  scratchFixed = number(cpu::kScratchFixedAttr);
  return llvm::Error::success();
}

llvm::Error KernelModule::pack() {
  weights = std::make_unique<GuardedMemory>(cpu::packedBytes(*module), kProgramAlignment);
  int64_t size = weights->bytes().size();
  weightsDescriptor = describe(weights->data(), size);
  uint8_t *next = weights->data();
  auto sink = [&](ArrayRef<uint8_t> bytes) {
    next = llvm::copy(bytes, next);
    return llvm::Error::success();
  };
  cpu::PackOptions options;
  options.sink = sink;
  options.threads = 1;
  llvm::Error error = cpu::packWeights(*module, *checkpoint, options);
  weights->protect();
  return error;
}

llvm::Error KernelModule::reachCode(const rt::RuntimeTable &runtime) {
  addDispatcher(*module);
  auto shared = makeSharedObject(
      *module, [&] { return runPasses("stage `llvm`", cpu::addLoopsToLlvmPasses); });
  if (!shared)
    return shared.takeError();
  model = std::make_unique<LoadedModel>(*shared, runtime);
  return model->error.empty() ? llvm::Error::success() : llvm::createStringError(model->error);
}

llvm::Expected<std::unique_ptr<KernelModule>> KernelModule::parse(StringRef text) {
  std::unique_ptr<KernelModule> made(new KernelModule);
  DialectRegistry registry;
  cpu::registerCompilerDialects(registry);
  made->context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  made->context->loadDialect<bufferization::BufferizationDialect>();
  made->source = parseSourceString<ModuleOp>(text, made->context.get());
  if (!made->source)
    return llvm::createStringError("the text is no module");
  made->module = made->source->clone();
  return made;
}

llvm::Error KernelModule::lower(StringRef text, const cpu::TargetDescription &target) {
  auto made = parse(text);
  if (!made)
    return made.takeError();
  if (llvm::Error error = (*made)->reachKernels())
    return error;
  return (*made)->reachLoops(target);
}

llvm::Expected<std::unique_ptr<KernelModule>>
KernelModule::compile(StringRef text, const cpu::TargetDescription &target,
                      const rt::RuntimeTable &runtime, bool unevenWeights) {
  auto parsed = parse(text);
  if (!parsed)
    return parsed.takeError();
  std::unique_ptr<KernelModule> made = std::move(*parsed);
  made->checkpoint = std::make_unique<Checkpoint>(*made->source, unevenWeights);
  if (llvm::Error error = made->reachKernels())
    return error;
  made->recordSignatures();
  if (llvm::Error error = made->reachLoops(target))
    return error;
  if (llvm::Error error = made->pack())
    return error;
  if (llvm::Error error = made->reachCode(runtime))
    return error;
  return made;
}

func::FuncOp KernelModule::getFunction(StringRef name) const {
  return source.get().lookupSymbol<func::FuncOp>(name);
}

llvm::Expected<SmallVector<interp::Value>>
KernelModule::interpret(StringRef function, ArrayRef<interp::Value> arguments) const {
  return interp::interpret(getFunction(function), arguments, checkpoint->getProvider());
}

} // namespace mica::test
