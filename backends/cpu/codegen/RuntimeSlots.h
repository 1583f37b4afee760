//===- RuntimeSlots.h - layout of the runtime table -------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_CODEGEN_RUNTIMESLOTS_H
#define MICA_BACKENDS_CPU_CODEGEN_RUNTIMESLOTS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mica::cpu {

/// The calls of RuntimeCalls.def, in its order.
enum class RuntimeCall : unsigned {
#define MICA_RUNTIME_CALL(name, ...) name,
#include "backends/runtime/abi/RuntimeCalls.def"
#undef MICA_RUNTIME_CALL
};

/// The location and type of a function in the RuntimeTable.
struct RuntimeSlot {
  llvm::StringRef name;
  int32_t word; ///< index of the field; fields have 8 bytes
  mlir::LLVM::LLVMFunctionType type;
};

/// One slot for each RuntimeCall, in their order.
llvm::SmallVector<RuntimeSlot> getRuntimeSlots(mlir::MLIRContext *context);

/// The index of the RuntimeTable field that is the first argument of each call.
extern const int32_t kRuntimeWord;

/// The size of a RuntimeTable in bytes.
extern const int64_t kRuntimeTableBytes;

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_CODEGEN_RUNTIMESLOTS_H
