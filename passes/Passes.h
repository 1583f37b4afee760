//===- Passes.h - graph-to-graph passes of Mica -------------------*- C++ -*-===//
//
// One entry per pass in Passes.td. The order in which they run lives in pipelines/Stages.h.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_PASSES_PASSES_H
#define MICA_PASSES_PASSES_H

#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/CommandLine.h"

namespace mica {

/// What weights or caches are stored as. With integers, tables and the product with the vocabulary
/// are always of 8 bits.
enum class Precision { F32, BF16, Int8, Int4 };

/// The name on the command line: "f32", "bf16", "int8" or "int4".
llvm::StringRef nameOf(Precision precision);
/// The precision of that name, or nothing.
std::optional<Precision> precisionNamed(llvm::StringRef name);
/// The element type of a matrix of that precision.
mlir::Type elementTypeOf(mlir::MLIRContext *context, Precision precision);
/// The precision of a matrix with that element type.
Precision precisionOf(mlir::Type element);

/// What a command line option for a precision accepts.
llvm::cl::ValuesClass precisionValues();

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace mica

#endif // MICA_PASSES_PASSES_H
