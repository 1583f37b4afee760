//===- RuntimeSlots.h - the runtime's table as the code sees it -*- C++ -*-===//
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

/// Where a RuntimeTable holds one of its functions, and how that is called.
struct RuntimeSlot {
  llvm::StringRef name;
  int32_t word; ///< of the table, whose fields are words of 8 bytes
  mlir::LLVM::LLVMFunctionType type;
};

/// One slot for each RuntimeCall, in their order.
llvm::SmallVector<RuntimeSlot> getRuntimeSlots(mlir::MLIRContext *context);

/// The word of a RuntimeTable that is the first argument of each call.
extern const int32_t kRuntimeWord;

/// The size of a RuntimeTable.
extern const int64_t kRuntimeTableBytes;

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_CODEGEN_RUNTIMESLOTS_H
