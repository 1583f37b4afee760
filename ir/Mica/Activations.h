//===- Activations.h - the op of each activation ----------------*- C++ -*-===//

#ifndef MICA_IR_MICA_ACTIVATIONS_H
#define MICA_IR_MICA_ACTIVATIONS_H

#include "ir/Mica/Mica.h"

namespace mica {

/// Calls `visit(OpT())` for the op of each activation, in the order of the enum `Activation`. The
/// ops are null; only their types are used.
template <typename Visitor> void forEachActivationOp(Visitor visit) {
  visit(SiluOp());
  visit(GeluOp());
  visit(GeluTanhOp());
  visit(ReluOp());
  visit(Relu2Op());
  visit(QuickGeluOp());
}

} // namespace mica

#endif // MICA_IR_MICA_ACTIVATIONS_H
