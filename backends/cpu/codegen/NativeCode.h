//===- NativeCode.h - from the LLVM dialect to an object --------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_CODEGEN_NATIVECODE_H
#define MICA_BACKENDS_CPU_CODEGEN_NATIVECODE_H

#include "backends/cpu/target/CpuDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>

namespace mica::cpu {

/// Creates LLVM's target machine for `target`: position-independent code at the highest
/// optimization level; multiplications and additions are fused only if the IR allows it.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const TargetDescription &target);

/// Stage `llvm` -> LLVM IR. Every function gets the attributes of the module's target, for which
/// `machine` was created.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLlvmIr(mlir::ModuleOp module, llvm::LLVMContext &context, llvm::TargetMachine &machine);

/// Runs LLVM's O3 pipeline. `callbacks`, if any, are called before and after each pass.
void optimize(llvm::Module &module, llvm::TargetMachine &machine,
              llvm::PassInstrumentationCallbacks *callbacks = nullptr);

/// Emits assembly or an ELF object.
llvm::Expected<llvm::SmallString<0>> emit(llvm::Module &module, llvm::TargetMachine &machine,
                                          llvm::CodeGenFileType type);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_CODEGEN_NATIVECODE_H
