//===- RuntimeSlots.cpp - layout of the runtime table ---------------------===//

#include "backends/cpu/codegen/RuntimeSlots.h"

#include "backends/runtime/abi/RuntimeTable.h"

#include <cstddef>
#include <type_traits>

using namespace mlir;

namespace mica::cpu {

namespace {

using rt::RuntimeTable;

constexpr size_t kWordBytes = 8;

static_assert(sizeof(void *) == kWordBytes && sizeof(RuntimeTable::size) == kWordBytes,
              "a field of the table is not a word");

/// The LLVM type of a C parameter or result type.
template <typename C> Type convert(MLIRContext *context) {
  if constexpr (std::is_void_v<C>) {
    return LLVM::LLVMVoidType::get(context);
  } else if constexpr (std::is_pointer_v<C>) {
    return LLVM::LLVMPointerType::get(context);
  } else {
    static_assert(std::is_integral_v<C>, "the code passes pointers and integers only");
    return IntegerType::get(context, 8 * sizeof(C));
  }
}

template <typename Result, typename... Parameters>
LLVM::LLVMFunctionType convert(MLIRContext *context, Result (*RuntimeTable::*)(Parameters...)) {
  return LLVM::LLVMFunctionType::get(convert<Result>(context), {convert<Parameters>(context)...});
}

} // namespace

SmallVector<RuntimeSlot> getRuntimeSlots(MLIRContext *context) {
  return {
#define MICA_RUNTIME_CALL(name, ...)                                                               \
  RuntimeSlot{#name, offsetof(RuntimeTable, name) / kWordBytes,                                    \
              convert(context, &RuntimeTable::name)},
#include "backends/runtime/abi/RuntimeCalls.def"
#undef MICA_RUNTIME_CALL
  };
}

const int32_t kRuntimeWord = offsetof(RuntimeTable, runtime) / kWordBytes;

const int64_t kRuntimeTableBytes = sizeof(RuntimeTable);

} // namespace mica::cpu
