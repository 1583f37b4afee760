//===- Experts.h - experts in two halves ------------------------*- C++ -*-===//

#ifndef MICA_PASSES_SUPPORT_EXPERTS_H
#define MICA_PASSES_SUPPORT_EXPERTS_H

#include "ir/Mica/Mica.h"

namespace mica {

/// moe_experts(x, weights, experts, gate, down, up)
///   => moe_down(moe_gate_up(x, experts, gate, up), weights, experts, down)
/// The first half computes its result in `inner`, f32 or the type of x's elements, and a cast
/// rounds it to the latter if they differ. Returns the second half, which replaces `op`.
MoeDownOp splitExperts(MoeExpertsOp op, mlir::Type inner);

} // namespace mica

#endif // MICA_PASSES_SUPPORT_EXPERTS_H
