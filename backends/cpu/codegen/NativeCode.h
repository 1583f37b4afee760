//===- NativeCode.h - from the LLVM dialect to a shared object --*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_CODEGEN_NATIVECODE_H
#define MICA_BACKENDS_CPU_CODEGEN_NATIVECODE_H

#include "backends/cpu/target/CpuDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>
#include <vector>

namespace mica::cpu {

/// LLVM's machine for `target`: position-independent code at the highest level of optimization,
/// multiplications and additions fused only where the IR says so.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const TargetDescription &target);

/// Stage `llvm` -> LLVM IR, every function with the attributes of the module's target, of which
/// `machine` was made.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLlvmIr(mlir::ModuleOp module, llvm::LLVMContext &context, llvm::TargetMachine &machine);

/// LLVM's O3 pipeline.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

/// Assembly or an ELF object.
llvm::Expected<llvm::SmallString<0>> emit(llvm::Module &module, llvm::TargetMachine &machine,
                                          llvm::CodeGenFileType type);

/// An ELF object -> an ELF shared object that exports what the object defines globally.
llvm::Expected<llvm::SmallVector<char, 0>> linkSharedObject(llvm::StringRef object);

/// The undefined symbols of an ELF file, sorted.
llvm::Expected<std::vector<std::string>> undefinedSymbols(llvm::StringRef elf);

/// An error naming every undefined symbol of `elf` that is not in `allowed`.
llvm::Error checkUndefinedSymbols(llvm::StringRef elf, llvm::ArrayRef<llvm::StringRef> allowed);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_CODEGEN_NATIVECODE_H
