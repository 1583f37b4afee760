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
/// Whether the precision is of integers with scales, not of floats.
bool isInteger(Precision precision);
/// Whether caches can have this precision.
bool isCachePrecision(Precision precision);
/// The number of significant bits.
double significantBitsOf(Precision precision);
/// The approximate number of bits per weight, including its share of the scales.
double storedBitsOf(Precision precision);

/// How a checkpoint stores its weights.
enum class CheckpointKind { Floats, Blocks };

/// The model on which costs are measured for a kind of checkpoint: the worst of those trained in
/// f32, or one published in 4-bit blocks.
llvm::StringRef measuredModelOf(CheckpointKind kind);

/// The activation statistics by which quantization errors of weights are weighted.
enum class ActivationStatistics {
  None,
  FewMatrices, ///< `--imatrix` with statistics of few of the matrices
  Imatrix,     ///< `--imatrix`
  Calibrated,  ///< `--calibrate`
};

/// The KL divergence (in nats) due to a precision on that model; empty if it was not measured. It
/// is that of docs/quality.md, the larger of prefill and decode. Prefill is as precise as decode on
/// processors without bf16 dot products and less precise on others: the larger figure of these is
/// stated, wherever the compiler runs (tests/quality/published.py).
struct PrecisionCosts {
  /// Of weights, and of the same programs with int8 activations in prefill.
  struct Weights {
    llvm::StringLiteral exactRows, int8Rows;
  };
  Weights weights, calibrated, imatrix;
  llvm::StringLiteral cache;

  /// The cost of weights with these statistics; if it was not measured, that without them, which
  /// the text says. Empty if neither was measured.
  std::string textOf(ActivationStatistics statistics, bool hasInt8Rows) const;
};
const PrecisionCosts &costsOf(Precision precision, CheckpointKind kind);
/// The KL divergence due to int8 activations in prefill if blocks are preserved: the largest of all
/// block formats.
llvm::StringRef maxCostOfInt8Rows();

/// The element type of matrices with this precision.
mlir::Type weightTypeOf(mlir::MLIRContext *context, Precision precision);
/// The element type of lm_head, and of the embedding table that is often tied to it: 6 bits if
/// other matrices have 4.
mlir::Type vocabularyTypeOf(mlir::MLIRContext *context, Precision precision);
/// The element type of caches with this precision; isCachePrecision must hold.
mlir::Type cacheTypeOf(mlir::MLIRContext *context, Precision precision);
/// The precision of a float type or an integer cache type. `element` must not be a block format.
Precision precisionOf(mlir::Type element);

/// The activations multiplied by block-quantized weights in prefill: those of ExactRows, or 8-bit
/// integers with a scale per 32.
enum class PromptRows { Exact, Int8 };

/// The type of exact activations multiplied by block-quantized weights in prefill: floats, to which
/// the blocks are expanded, or 16-bit integers as in decode.
enum class ExactRows { F32, BF16, Int16 };

/// On a module: its PromptRows by name; exact if absent.
inline constexpr llvm::StringLiteral kPromptRowsAttr = "mica.prompt_rows";

/// The name on the command line and in the attribute: "exact" or "int8".
llvm::StringRef nameOf(PromptRows rows);
/// The choice with this name, or nullopt.
std::optional<PromptRows> promptRowsNamed(llvm::StringRef name);
/// The names of all choices.
std::vector<std::string> promptRowsNames();
/// The choice of the module; emits an error at the module if it is invalid.
mlir::FailureOr<PromptRows> promptRowsOf(mlir::ModuleOp module);
void setPromptRows(mlir::ModuleOp module, PromptRows rows);

/// The element type of activations multiplied by block-quantized weights in prefill.
mlir::Type promptRowType(mlir::MLIRContext *context, PromptRows rows, ExactRows exact);
/// The choices for which promptRowType has this display name (see displayNameOf), or nullopt.
std::optional<std::pair<PromptRows, ExactRows>> promptRowsOfType(mlir::MLIRContext *context,
                                                                 llvm::StringRef name);
/// The display name of an element type of weights or rows: "f32", "q4_k" or "int16 per 32".
std::string displayNameOf(mlir::Type element);

/// What probes record: every op's result, or the input rows of matmuls.
enum class Probed { Results, ProductRows };

/// The values of a command line option for a precision.
llvm::cl::ValuesClass precisionValues();
/// The values of a command line option for exact rows.
llvm::cl::ValuesClass exactRowsValues();

} // namespace mica

#endif // MICA_PASSES_SUPPORT_PRECISION_H
