//===- Memory.h - weights and buffers ---------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_EXPLORE_MEMORY_H
#define MICA_TOOLS_EXPLORE_MEMORY_H

#include "tools/explore/Record.h"

#include "mlir/IR/BuiltinOps.h"

namespace mica::explore {

/// The weights of a module at stage `kernels`, by their offsets. Its ops have numbers.
std::vector<WeightRecord> recordWeights(mlir::ModuleOp module);

/// The buffers in scratch memory of each function at stage `loops`, and when it uses weights and
/// caches. Its ops have numbers.
std::vector<FunctionMemory> recordMemory(mlir::ModuleOp module);

} // namespace mica::explore

#endif // MICA_TOOLS_EXPLORE_MEMORY_H
