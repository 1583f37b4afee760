//===- Renamed.h - names of earlier versions of the IR ----------*- C++ -*-===//
//
// One row per op, attribute, keyword and role that had another name in an earlier version. Files
// that use an old name are rejected with an error that states the new one; docs/ir-changes.md lists
// the same rows.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_MICA_RENAMED_H
#define MICA_IR_MICA_RENAMED_H

#include "mlir/IR/OpDefinition.h"

#include <string>

namespace mica {

struct Renaming {
  llvm::StringLiteral from, to;
};

llvm::ArrayRef<Renaming> renamings();

/// The current name of `name`, or an empty string if it was not renamed.
llvm::StringRef renamedTo(llvm::StringRef name);

/// "; it was renamed to 'weight_offset'", or an empty string: the end of an error message about
/// `name`.
std::string renamedHint(llvm::StringRef name);

/// The replacement of the type `name` of an earlier version, as the end of a sentence; empty if
/// there was no such type.
llvm::StringRef replacementOfType(llvm::StringRef name);

/// Fails if `op` has a discardable attribute without a dialect prefix: MLIR would keep it, but
/// nothing would read it.
llvm::LogicalResult verifyKnownAttributes(mlir::Operation *op);

/// A trait of every op of the dialect, see verifyKnownAttributes.
template <typename ConcreteOp>
class KnownAttributes : public mlir::OpTrait::TraitBase<ConcreteOp, KnownAttributes> {
public:
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) { return verifyKnownAttributes(op); }
};

} // namespace mica

#endif // MICA_IR_MICA_RENAMED_H
