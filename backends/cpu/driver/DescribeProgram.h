//===- DescribeProgram.h - the manifest of a program ------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_DRIVER_DESCRIBEPROGRAM_H
#define MICA_BACKENDS_CPU_DRIVER_DESCRIBEPROGRAM_H

#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <nlohmann/json.hpp>

namespace mica::cpu {

/// The manifest as far as the module determines it at stage `kernels`: target, caches, costs, end
/// tokens (see abi/Manifest.h for the keys).
nlohmann::json describeProgram(mlir::ModuleOp module, Precision weights, Precision kv,
                               int64_t maxSeq);

/// The number of occurrences of each op of the dialect in `function`, by name without `mica.`;
/// mica.get_weight is not counted.
std::map<std::string, int64_t> countOps(mlir::func::FuncOp function);

/// At stage `kernels`: the fraction of each weight that decoding one token reads. Weights that are
/// not streamed as a whole, such as embedding tables, are absent.
llvm::StringMap<double> sharesReadPerToken(mlir::ModuleOp module);

/// The number of checkpoint tensors by the display name of the element type of the weights that
/// they are part of. A tensor whose parts have different types counts for each.
using TensorCounts = std::map<std::string, int64_t>;

/// The number of the checkpoint's tensors, and of those that some weights are made of.
int64_t countTensors(mlir::ModuleOp module);
int64_t countTensors(llvm::ArrayRef<WeightOp> weights);

/// The counts for weights at stage `kernels` with preserved block formats.
TensorCounts preservedBlocks(mlir::ModuleOp module);
/// The counts for block-quantized weights at stage `kernels`, preserved or in Mica's own formats,
/// and for weights of floats.
TensorCounts blockFormatsOf(mlir::ModuleOp module);
TensorCounts floatTypesOf(mlir::ModuleOp module);

/// The types of activations multiplied by block-quantized weights at stage `kernels`, by row role;
/// empty if there are none.
std::map<std::string, std::string> rowsOfRoles(mlir::ModuleOp module);

/// The sizes in bytes of the memory of one sequence.
struct SequenceBytes {
  int64_t perToken = 0;   ///< of all caches, per position
  int64_t caches = 0;     ///< of all caches and states, at its maximum length
  int64_t states = 0;     ///< of them, of states of fixed size
  int64_t checkpoint = 0; ///< of a checkpoint of these states
};
/// Adds to each cache and state in `manifest` its size per sequence and checkpoint, and returns the
/// sums.
llvm::Expected<SequenceBytes> addSequenceBytes(nlohmann::json &manifest);

/// At stage `loops`: every kernel and oneDNN matmul, by the name that a profile uses, with the
/// locations in the model of the ops that run it.
nlohmann::json describeKernels(mlir::ModuleOp module);

/// Adds what is only known at stage `loops`: the arguments of the code, its scratch memory and its
/// kernels.
void describeCode(nlohmann::json &manifest, mlir::ModuleOp module);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_DRIVER_DESCRIBEPROGRAM_H
