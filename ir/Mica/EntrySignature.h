//===- EntrySignature.h - arguments and results by their roles --*- C++ -*-===//

#ifndef MICA_IR_MICA_ENTRYSIGNATURE_H
#define MICA_IR_MICA_ENTRYSIGNATURE_H

#include "ir/Entry/EntryRoles.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace mica {

/// On an argument or a result of an entry function: the name of its role.
inline constexpr llvm::StringLiteral kEntryRoleAttr = "mica.role";

/// On a function: the role of the rows it is called for, kPromptRole or kDecodeRole. Either all
/// functions have it or none; without it they handle both. The functions of a multi-token
/// prediction head always have kDraftRole.
inline constexpr llvm::StringLiteral kRowRoleAttr = "mica.row_role";
inline constexpr llvm::StringLiteral kPromptRole = "prompt", kDecodeRole = "decode",
                                     kDraftRole = "draft";

/// The arguments and results of an entry function, identified by their roles and never by their
/// index. A view of the function: nothing is stored.
class EntrySignature {
public:
  explicit EntrySignature(mlir::FunctionOpInterface entry) : entry(entry) {}

  /// The role of an argument or result; nullopt if it has none or an unknown one.
  std::optional<EntryRole> argumentRole(unsigned index) const;
  std::optional<EntryRole> resultRole(unsigned index) const;
  /// The role of an argument of an entry function; nullopt for other values.
  static std::optional<EntryRole> roleOf(mlir::Value value);

  /// The first argument with this role, or null. The function must have a body.
  mlir::BlockArgument argument(EntryRole role) const;
  /// The first argument that has one number per row of a call, or null.
  mlir::BlockArgument rowVector() const;
  /// The index of the first result with this role, or nullopt.
  std::optional<unsigned> result(EntryRole role) const;
  /// The states that a program keeps between calls: the arguments, and the indices of the results
  /// that are their next values, in the same order.
  llvm::SmallVector<mlir::BlockArgument> states() const;
  llvm::SmallVector<unsigned> stateResults() const;
  /// The rows that an entry function overwrites with a result (EntryKind::TokenRows), or null.
  mlir::BlockArgument hidden() const { return argument(EntryRole::Hidden); }
  /// The size of the vocabulary (columns of the logits); 0 if there are no logits.
  int64_t vocabulary() const;

  void setArgumentRole(unsigned index, EntryRole role);
  void setResultRole(unsigned index, EntryRole role);
  /// Removes all roles, for functions that become private.
  void eraseRoles();

  /// Fails at the function unless every argument and every result has a role.
  mlir::LogicalResult verifyComplete() const;
  /// Verifies that `role`, kEntryRoleAttr of argument or result `index` of `function`, is known,
  /// does not repeat that of an earlier one, and matches the type.
  static mlir::LogicalResult verifyArgument(mlir::Operation *function, unsigned index,
                                            mlir::Attribute role);
  static mlir::LogicalResult verifyResult(mlir::Operation *function, unsigned index,
                                          mlir::Attribute role);

private:
  mutable mlir::FunctionOpInterface entry;
};

/// How many logits a step has: the model's number of tokens.
int64_t getVocabulary(mlir::ModuleOp module);

} // namespace mica

#endif // MICA_IR_MICA_ENTRYSIGNATURE_H
