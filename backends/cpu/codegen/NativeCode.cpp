//===- NativeCode.cpp - from the LLVM dialect to assembly or an object ----===//

#include "backends/cpu/codegen/NativeCode.h"

#include "ir/Exec/Exec.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetOptions.h"

#include <mutex>

using namespace llvm;

namespace mica::cpu {

Expected<std::unique_ptr<TargetMachine>> createTargetMachine(const TargetDescription &target) {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    InitializeNativeTargetAsmParser();
  });
  std::string message;
  Triple triple(kTriple);
  const Target *llvmTarget = TargetRegistry::lookupTarget(triple, message);
  // No test: LLVM is built with Mica's only target.
  if (!llvmTarget)
    return createStringError("LLVM has no code generator for " + Twine(kTriple) + ": " + message);
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Standard;
  std::unique_ptr<TargetMachine> machine(
      llvmTarget->createTargetMachine(triple, target.cpu, target.featureString(), options,
                                      Reloc::PIC_, CodeModel::Small, CodeGenOptLevel::Aggressive));
  // No test: describeTarget only accepts CPUs of that target.
  if (!machine)
    return createStringError("LLVM cannot generate code for the target " + target.cpu);
  return machine;
}

/// Adds the function attributes that clang would add for this target.
static void addTargetAttributes(Module &module, const TargetDescription &target) {
  for (Function &function : module) {
    function.addFnAttr(Attribute::NoUnwind);
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.featureString());
    // Some CPUs with AVX-512 are tuned for 256 bits; but kernels use 512-bit vectors.
    function.addFnAttr("prefer-vector-width", std::to_string(target.vectorBits));
  }
}

Expected<std::unique_ptr<Module>> translateToLlvmIr(mlir::ModuleOp module, LLVMContext &context,
                                                    TargetMachine &machine) {
  // Loop annotations are attached to the back edge as an attribute that the translation does not
  // support.
  module.walk([](mlir::LLVM::BrOp branch) {
    using mlir::LLVM::LoopAnnotationAttr;
    if (auto annotation =
            branch->getAttrOfType<LoopAnnotationAttr>(mica::exec::kLoopAnnotationAttr))
      branch.setLoopAnnotationAttr(annotation);
  });
  mlir::DialectRegistry registry;
  mlir::registerAllToLLVMIRTranslations(registry);
  module.getContext()->appendDialectRegistry(registry);
  std::unique_ptr<Module> translated = mlir::translateModuleToLLVMIR(module, context, "mica-model");
  if (!translated)
    return createStringError("stage llvm cannot be translated to LLVM IR");
  translated->setTargetTriple(machine.getTargetTriple());
  translated->setDataLayout(machine.createDataLayout());
  translated->setPICLevel(PICLevel::BigPIC);
  addTargetAttributes(*translated, targetOf(module));
  std::string broken;
  raw_string_ostream stream(broken);
  // No test: MLIR's verifier rejects all known invalid modules earlier.
  if (verifyModule(*translated, &stream))
    return createStringError("stage ll is broken: " + broken);
  return translated;
}

void optimize(Module &module, TargetMachine &machine, PassInstrumentationCallbacks *callbacks) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager callGraph;
  ModuleAnalysisManager modules;
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  PassBuilder builder(&machine, tuning, std::nullopt, callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3).run(module, modules);
}

/// Turns off the pass that balances chains of integer additions, (a + b) + c to a + (b + c). The
/// kernels add to as many accumulators as there are registers, so that no chain is critical, and
/// each additional temporary value is spilled: products of 16-bit activations take 5 % more time.
static void keepChainsOfAdditions() {
  auto &options = cl::getRegisteredOptions();
  auto option = options.find("x86-machine-combiner");
  if (option != options.end())
    static_cast<cl::opt<bool> *>(option->second)->setValue(false);
}

Expected<SmallString<0>> emit(Module &module, TargetMachine &machine, CodeGenFileType type) {
  // For each module, because the option may have been reset in between.
  keepChainsOfAdditions();
  SmallString<0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager passes;
  // No test: the target supports all file types.
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return createStringError("LLVM cannot write this kind of file for the target");
  passes.run(module);
  return bytes;
}

} // namespace mica::cpu
