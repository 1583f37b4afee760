//===- DescribeProgram.h - what a program says about its model --*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_DRIVER_DESCRIBEPROGRAM_H
#define MICA_BACKENDS_CPU_DRIVER_DESCRIBEPROGRAM_H

#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <nlohmann/json.hpp>

namespace mica::cpu {

/// What the module says at stage `kernels`: target, caches, costs, end tokens (see abi/Manifest.h
/// for the keys).
nlohmann::json describeProgram(mlir::ModuleOp module, Precision weights, Precision kv,
                               int64_t maxSeq);

/// How often each op of the dialect occurs in `function`, by its name without `mica.`; reading a
/// weight is not counted.
std::map<std::string, int64_t> countOps(mlir::func::FuncOp function);

/// At stage `kernels`: the share of each weight that decoding one token reads. Weights that are not
/// streamed as a whole, such as tables of embeddings, are absent.
llvm::StringMap<double> sharesReadPerToken(mlir::ModuleOp module);

/// By the display name of an element type of weights, the number of the checkpoint's tensors that
/// they are made of. A tensor of which parts have different types counts in each.
using TensorCounts = std::map<std::string, int64_t>;

/// The number of the checkpoint's tensors.
int64_t countTensors(mlir::ModuleOp module);

/// Of weights at stage `kernels` that keep the blocks of their checkpoint.
TensorCounts preservedBlocks(mlir::ModuleOp module);
/// Of weights at stage `kernels` in blocks, preserved or Mica's own, and of those in floats.
TensorCounts blockFormatsOf(mlir::ModuleOp module);
TensorCounts floatTypesOf(mlir::ModuleOp module);

/// The types of the rows that multiply weights in blocks at stage `kernels`, by role; empty where
/// there are none.
std::map<std::string, std::string> rowsOfRoles(mlir::ModuleOp module);

/// Bytes of the caches of one sequence at its full length.
llvm::Expected<int64_t> cacheBytesOf(const nlohmann::json &manifest);

/// At stage `loops`: every kernel and oneDNN matmul, by the name that a profile uses, with the
/// locations in the model of the ops that run it.
nlohmann::json describeKernels(mlir::ModuleOp module);

/// Adds what is only known at stage `loops`: the arguments of the code, its scratch memory and its
/// kernels.
void describeCode(nlohmann::json &manifest, mlir::ModuleOp module);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_DRIVER_DESCRIBEPROGRAM_H
