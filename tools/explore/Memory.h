//===- Memory.h - weights and buffers ---------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_MEMORY_H
#define MICA_TOOLS_EXPLORE_MEMORY_H

#include "tools/explore/Record.h"

#include "mlir/IR/BuiltinOps.h"

namespace mica::explore {

/// The weights of a module at stage `kernels`, by offset. Ops must be numbered.
std::vector<WeightRecord> recordWeights(mlir::ModuleOp module);

/// The buffers in scratch memory of each function at stage `loops`, and its uses of weights and
/// caches. Ops must be numbered.
std::vector<FunctionMemory> recordMemory(mlir::ModuleOp module);

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_MEMORY_H
