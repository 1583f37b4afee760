//===- Precision.h - names and types of precisions --------------*- C++ -*-===//

#ifndef MICA_PASSES_SUPPORT_PRECISION_H
#define MICA_PASSES_SUPPORT_PRECISION_H

#include "ir/Entry/Precision.h"
#include "ir/Mica/Mica.h"

#include "llvm/Support/CommandLine.h"

namespace mica {

/// The name on the command line: "f32", "bf16", "int8" or "int4".
llvm::StringRef nameOf(Precision precision);
/// The names of all precisions, and of those that caches may have.
std::vector<std::string> precisionNames();
std::vector<std::string> cachePrecisionNames();
/// Whether numbers are integers with scales; else floats.
bool isInteger(Precision precision);
/// Whether caches may have that precision.
bool isCachePrecision(Precision precision);
/// Bits that a number is exact to.
double significantBitsOf(Precision precision);
/// About how many bits a weight takes, with its part of the scales.
double storedBitsOf(Precision precision);

/// How the weights are stored that a program is made from.
enum class CheckpointKind { Floats, Blocks };

/// The model on which costs are measured for checkpoints of a kind: a model that was trained in
/// f32, and one that is published in 4-bit blocks.
llvm::StringRef measuredModelOf(CheckpointKind kind);

/// The KL divergence that a precision costs on that model: figures of docs/quality.md; empty where
/// none was measured.
struct PrecisionCosts {
  llvm::StringLiteral weights, calibratedWeights, cache;
};
const PrecisionCosts &costsOf(Precision precision, CheckpointKind kind);
/// The same of int8 rows in prompts.
llvm::StringRef costOfInt8Rows(CheckpointKind kind);

/// The element type of a matrix of that precision.
mlir::Type weightTypeOf(mlir::MLIRContext *context, Precision precision);
/// The element type of lm_head, and of the embedding table that is often tied to it: 6 bits if
/// other matrices have 4.
mlir::Type vocabularyTypeOf(mlir::MLIRContext *context, Precision precision);
/// The element type of a cache of that precision, which is one of caches.
mlir::Type cacheTypeOf(mlir::MLIRContext *context, Precision precision);
/// The precision of floats, or of a cache of integers. Block-quantized weights have none: their
/// bits are those of their format.
Precision precisionOf(mlir::Type element);

/// The activations multiplied by block-quantized weights in prefill: those of ExactRows, or 8-bit
/// integers with a scale per 32.
enum class PromptRows { Exact, Int8 };

/// The type of exact activations multiplied by block-quantized weights in prefill: floats, to which
/// the blocks are expanded, or 16-bit integers as in decode.
enum class ExactRows { F32, BF16, Int16 };

/// On a module: its PromptRows by name. Without it they are exact.
inline constexpr llvm::StringLiteral kPromptRowsAttr = "mica.prompt_rows";

/// The name on the command line and in the attribute: "exact" or "int8".
llvm::StringRef nameOf(PromptRows rows);
/// The choice of that name, or none.
std::optional<PromptRows> promptRowsNamed(llvm::StringRef name);
/// The names of all choices.
std::vector<std::string> promptRowsNames();
/// The choice of the module; emits an error at the module if it is invalid.
mlir::FailureOr<PromptRows> promptRowsOf(mlir::ModuleOp module);
void setPromptRows(mlir::ModuleOp module, PromptRows rows);

/// The element type of activations multiplied by block-quantized weights in prefill.
mlir::Type promptRowType(mlir::MLIRContext *context, PromptRows rows, ExactRows exact);
/// The rows of prompts whose element type has that name (displayNameOf); nothing where none have.
std::optional<std::pair<PromptRows, ExactRows>> promptRowsOfType(mlir::MLIRContext *context,
                                                                 llvm::StringRef name);
/// The display name of an element type of weights or rows: "f32", "q4_k" or "int16 per 32".
std::string displayNameOf(mlir::Type element);

/// What probes record: every op's result, or the input rows of matmuls.
enum class Probed { Results, ProductRows };

/// What a command line option for a precision accepts.
llvm::cl::ValuesClass precisionValues();
/// What a command line option for exact rows accepts.
llvm::cl::ValuesClass exactRowsValues();

} // namespace mica

#endif // MICA_PASSES_SUPPORT_PRECISION_H
