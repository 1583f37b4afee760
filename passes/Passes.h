//===- Passes.h - graph-to-graph passes of Mica -----------------*- C++ -*-===//
//
// One entry per pass in Passes.td. Their order is defined in pipelines/Stages.h.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_PASSES_PASSES_H
#define MICA_PASSES_PASSES_H

#include "ir/Mica/Mica.h"
#include "passes/support/Phases.h"
#include "passes/support/Precision.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace mica {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// The type of exact rows (see ExactRows) in a module, as its target decides.
using ExactRowsOf = std::function<ExactRows(mlir::ModuleOp)>;

/// These passes with the backend's choice instead of the pass option.
std::unique_ptr<mlir::Pass> createAssignPromptRows(ExactRowsOf exactRowsOf);
std::unique_ptr<mlir::Pass> createSpecializePhases(const PhaseRows &rows, ExactRowsOf exactRowsOf);

} // namespace mica

#endif // MICA_PASSES_PASSES_H
