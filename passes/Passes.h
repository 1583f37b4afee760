//===- Passes.h - graph-to-graph passes of Mica -----------------*- C++ -*-===//
//
// One entry per pass in Passes.td. The order in which they run lives in pipelines/Stages.h.
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

/// What exact rows are in a module, where its target decides.
using ExactRowsOf = std::function<ExactRows(mlir::ModuleOp)>;

/// `mica-assign-prompt-rows` with the choice of a backend in place of its option.
std::unique_ptr<mlir::Pass> createAssignPromptRows(ExactRowsOf exactRowsOf);

} // namespace mica

#endif // MICA_PASSES_PASSES_H
