//===- Recorder.cpp - records a compilation -------------------------------===//

#include "tools/explore/Recorder.h"

#include "backends/cpu/codegen/NativeCode.h"
#include "backends/cpu/codegen/SharedObject.h"
#include "backends/runtime/support/Hash.h"
#include "ir/Exec/Exec.h"
#include "ir/Mica/Names.h"
#include "tools/explore/Code.h"
#include "tools/explore/MachineCodeLog.h"
#include "tools/explore/Memory.h"
#include "tools/explore/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;
using llvm::Error;

namespace mica::explore {

namespace {

/// Assigns numbers to kinds of ops.
class Kinds {
public:
  uint32_t indexOf(StringRef kind) {
    auto [place, isNew] = known.try_emplace(kind, static_cast<uint32_t>(names.size()));
    if (isNew)
      names.push_back(kind.str());
    return place->second;
  }
  std::vector<std::string> names;

private:
  llvm::StringMap<uint32_t> known;
};

} // namespace

/// The source of a value, looking through loop-carried values.
static Value sourceOf(Value value) {
  while (true) {
    auto result = dyn_cast<OpResult>(value);
    auto loop = result ? dyn_cast<LoopLikeOpInterface>(result.getOwner()) : LoopLikeOpInterface();
    if (loop) {
      std::optional<MutableArrayRef<OpOperand>> yielded = loop.getYieldedValuesMutable();
      if (!yielded)
        return value;
      value = (*yielded)[result.getResultNumber()].get();
      continue;
    }
    auto argument = dyn_cast<BlockArgument>(value);
    auto outer = argument ? dyn_cast<LoopLikeOpInterface>(argument.getOwner()->getParentOp())
                          : LoopLikeOpInterface();
    OpOperand *init = outer ? outer.getTiedLoopInit(argument) : nullptr;
    if (!init)
      return value;
    value = init->get();
  }
}

/// Records operands and attributes for the page's graph and panel.
static void recordOperands(StageRecord &made, ModuleOp module,
                           const llvm::DenseMap<Operation *, int32_t> &numbers) {
  llvm::DenseMap<Type, uint32_t> types;
  module->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == module)
      return;
    std::vector<AttributeRecord> &attributes = made.attributes.emplace_back();
    for (NamedAttribute attribute : op->getAttrDictionary())
      if (!isa<FunctionOpInterface>(op))
        attributes.push_back({attribute.getName().str(), textOf(attribute.getValue())});
    std::vector<OperandRecord> &all = made.operands.emplace_back();
    for (Value operand : op->getOperands()) {
      Value source = sourceOf(operand);
      auto [type, isNew] =
          types.try_emplace(operand.getType(), static_cast<uint32_t>(made.types.size()));
      if (isNew)
        made.types.push_back(recordType(operand.getType()));
      auto argument = dyn_cast<BlockArgument>(source);
      bool isFunctions = argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
      int32_t from = isFunctions ? -2 - static_cast<int32_t>(argument.getArgNumber())
                     : argument  ? numbers.lookup(argument.getOwner()->getParentOp())
                                 : numbers.lookup(source.getDefiningOp());
      uint32_t result = argument ? 0 : cast<OpResult>(source).getResultNumber();
      all.push_back({from, result, type->second});
    }
  });
}

/// Kernels are created for the first op that launches them, but originate from all ops that do.
static llvm::StringMap<Origins> originsOfKernels(ModuleOp module) {
  llvm::StringMap<Origins> kernels;
  module.walk([&](exec::LaunchOp launch) {
    Origins &all = kernels[launch.getKernel()];
    Origins own = originsOf(launch.getLoc());
    all.insert(all.end(), own.begin(), own.end());
  });
  return kernels;
}

static Origins joined(Origins a, const Origins &b) {
  a.insert(a.end(), b.begin(), b.end());
  llvm::sort(a);
  a.erase(llvm::unique(a), a.end());
  return a;
}

/// For an op without a location: a constant that folding created for several ops originates from
/// all of its users.
static Origins originsOfUsers(Operation *op) {
  Origins all;
  for (Operation *user : op->getUsers())
    all = joined(std::move(all), originsOf(user->getLoc()));
  return all;
}

void Recorder::recordStage(Stage stage, ModuleOp module) {
  StageRecord made;
  const StageInfo &info = getStageInfo(stage);
  made.name = info.name.str();
  made.help = info.help.str();
  made.from = static_cast<int>(record.stages.size()) - 1;
  llvm::raw_string_ostream stream(made.text);
  SmallVector<unsigned> printed = printWithLines(module, stream, stage <= Stage::Kernels);
  Kinds kinds;
  OriginTable table;
  llvm::StringMap<Origins> kernels = originsOfKernels(module);
  llvm::DenseMap<Operation *, int32_t> numbers;
  // Computed before the locations are renumbered.
  llvm::DenseMap<Operation *, Origins> ofUsers;
  if (made.from >= 0)
    module->walk([&](Operation *op) {
      if (op->hasTrait<OpTrait::ConstantLike>() && originsOf(op->getLoc()).empty())
        ofUsers[op] = originsOfUsers(op);
    });
  size_t at = 0;
  module->walk<WalkOrder::PreOrder>([&](Operation *op) {
    size_t line = printed[at++];
    if (op == module)
      return;
    Origins origins = made.from < 0 ? Origins() : originsOf(op->getLoc());
    if (origins.empty())
      origins = ofUsers.lookup(op);
    auto function =
        isa<func::FuncOp>(op) ? cast<func::FuncOp>(op) : op->getParentOfType<func::FuncOp>();
    if (function)
      if (auto kernel = kernels.find(function.getName()); kernel != kernels.end())
        origins = joined(std::move(origins), kernel->second);
    auto number = static_cast<uint32_t>(made.ops.size());
    auto known = numbers.find(op->getParentOp());
    int32_t parent = known == numbers.end() ? -1 : known->second;
    numbers[op] = static_cast<int32_t>(number);
    made.ops.push_back({static_cast<uint32_t>(line), kinds.indexOf(op->getName().getStringRef()),
                        table.indexOf(std::move(origins)), parent});
    made.places.push_back(locationsOf(op->getLoc()));
    op->setLoc(numbered(op->getLoc(), number));
  });
  if (stage <= Stage::Kernels)
    recordOperands(made, module, numbers);
  made.kinds = std::move(kinds.names);
  made.origins = table.take();
  record.stages.push_back(std::move(made));
}

void Recorder::onPipeline(Stage stage, PassManager &manager) {
  passes.watch(manager, static_cast<int>(stage));
}

Error Recorder::onModule(Stage stage, ModuleOp module) {
  if (stage == Stage::Llvm)
    return numberCode(module);
  recordStage(stage, module);
  if (stage == Stage::Kernels)
    record.weights = recordWeights(module);
  if (stage == Stage::Loops)
    record.memory = recordMemory(module);
  return Error::success();
}

Error Recorder::numberCode(ModuleOp module) {
  auto file = StringAttr::get(module.getContext(), "loops");
  module->walk([&](Operation *op) {
    Origins origins = originsOf(op->getLoc());
    unsigned line = origins.empty() ? 0 : lines.indexOf(std::move(origins)) + 1;
    op->setLoc(FileLineColLoc::get(file, line, 0));
  });
  PassManager scopes(module.getContext());
  scopes.addPass(LLVM::createDIScopeForLLVMFuncOpPass());
  // No test: the pass only adds attributes, and does not fail.
  if (failed(scopes.run(module)))
    return llvm::createStringError("cannot add debug locations to stage llvm");
  return Error::success();
}

void Recorder::onOptimizer(llvm::Module &code, llvm::PassInstrumentationCallbacks &callbacks) {
  codePasses.watch(code, callbacks, static_cast<int>(Stage::Ll));
}

Error Recorder::onCode(llvm::Module &code, llvm::TargetMachine &machine) {
  int loops = static_cast<int>(record.stages.size()) - 1;
  inferLines(code);
  llvm::StringMap<uint32_t> functions = linesOfFunctions(code);
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(code);
  MachineCodeLog log(code.getContext());
  llvm::Expected<SmallString<0>> assembly =
      cpu::emit(*copy, machine, llvm::CodeGenFileType::AssemblyFile);
  if (!assembly)
    return assembly.takeError();
  machinePasses = log.takePasses(static_cast<int>(Stage::Asm));
  record.machineCode = log.takeFunctions();
  StageRecord ir = recordIr(code), assembled = recordAssembly(*assembly, functions);
  std::vector<Origins> all = lines.take();
  for (StageRecord *made : {&ir, &assembled}) {
    made->from = loops;
    made->origins = all;
    record.stages.push_back(std::move(*made));
  }
  return Error::success();
}

Error Recorder::onObject(StringRef object, StringRef manifest) {
  llvm::Expected<llvm::SmallVector<char, 0>> shared = cpu::linkSharedObject(object);
  if (!shared)
    return shared.takeError();
  record.codeHash = rt::hashBytes(shared->data(), shared->size());
  record.manifest = manifest.str();
  return Error::success();
}

Record Recorder::take() {
  record.passes = passes.take();
  llvm::append_range(record.passes, codePasses.take());
  llvm::append_range(record.passes, std::move(machinePasses));
  return std::move(record);
}

} // namespace mica::explore
