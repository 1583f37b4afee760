//===- Roles.cpp - every op takes the row vector of its role --------------===//
//
// The tokens, sequences, positions, logit_indices and lengths of a step have the same type, and so
// do token rows and logit rows. Neither kernels nor the program check their values, and each vector
// is only known to be within its own bounds. So roles are propagated from the arguments of entry
// functions through calls and loops.
//
//===----------------------------------------------------------------------===//

#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/ModelDescription.h"
#include "passes/verify/Checks.h"

#include "mlir/Analysis/DataFlow/SparseAnalysis.h"
#include "mlir/Analysis/DataFlowFramework.h"

using namespace mlir;
using namespace mica;

static StringRef nameOf(StepRole role) {
  if (const auto *vector = std::get_if<EntryRole>(&role))
    return infoOf(*vector).name;
  return std::get<StepRows>(role) == StepRows::OfTokens ? "token rows" : "logit rows";
}

namespace {
/// The role of a value in a step, if it has one.
class Role {
public:
  Role() = default; ///< unknown
  explicit Role(StepRole role) : kind(Kind::Step), step(role) {}
  static Role other() {
    Role role;
    role.kind = Kind::Other;
    return role;
  }

  /// The role of an argument of an entry function.
  static Role of(EntryRole role) {
    EntryKind kind = infoOf(role).kind;
    return isVector(kind)                 ? Role(role)
           : kind == EntryKind::TokenRows ? Role(StepRows::OfTokens)
                                          : other();
  }

  static Role join(const Role &a, const Role &b) {
    if (a.isUnknown() || b.isUnknown())
      return a.isUnknown() ? b : a;
    return a == b ? a : other();
  }

  bool operator==(const Role &other) const = default;
  bool isUnknown() const { return kind == Kind::Unknown; }
  bool isRows() const { return kind == Kind::Step && std::holds_alternative<StepRows>(step); }

  StringRef name() const {
    switch (kind) {
    case Kind::Unknown:
      return "unreachable";
    case Kind::Other:
      return "no single role";
    case Kind::Step:
      return nameOf(step);
    }
    llvm_unreachable("all kinds are handled above");
  }

  void print(raw_ostream &os) const { os << name(); }

private:
  enum class Kind { Unknown, Other, Step };
  Kind kind = Kind::Unknown;
  StepRole step = {}; ///< of Step
};

using RoleLattice = dataflow::Lattice<Role>;

/// Propagates roles forward.
class RoleAnalysis : public dataflow::SparseForwardDataFlowAnalysis<RoleLattice> {
public:
  using SparseForwardDataFlowAnalysis::SparseForwardDataFlowAnalysis;

  LogicalResult visitOperation(Operation *op, ArrayRef<const RoleLattice *> operands,
                               ArrayRef<RoleLattice *> results) override {
    Role role = resultOf(op, operands);
    for (RoleLattice *result : results)
      propagateIfChanged(result, result->join(role));
    return success();
  }

  void setToEntryState(RoleLattice *lattice) override {
    std::optional<EntryRole> role = EntrySignature::roleOf(lattice->getAnchor());
    propagateIfChanged(lattice, lattice->join(role ? Role::of(*role) : Role::other()));
  }

private:
  /// Ops work row by row, so their results have the role of their operand rows. Unknown until all
  /// operands are known.
  static Role resultOf(Operation *op, ArrayRef<const RoleLattice *> operands) {
    if (auto roles = dyn_cast<HasStepRoles>(op))
      if (std::optional<StepRole> result = roles.getResultRole())
        return Role(*result);
    Role rows;
    for (const RoleLattice *operand : operands)
      if (operand->getValue().isUnknown())
        return {};
      else if (operand->getValue().isRows())
        rows = Role::join(rows, operand->getValue());
    return rows.isUnknown() ? Role::other() : rows;
  }
};

/// Checks that the operands of ops have the required roles.
class RoleCheck {
public:
  RoleCheck(ModuleOp module, const DataFlowSolver &solver) : solver(solver) {
    vocabulary = getVocabulary(module);
    if (Attribute attribute = module->getAttr(kModelAttr))
      if (auto model =
              readModelDescription(attribute, vocabulary, [&] { return module.emitOpError(); });
          succeeded(model))
        maxPositions = model->maxPositions;
  }

  LogicalResult verify(Operation *op) const {
    if (auto gather = dyn_cast<GathersRows>(op))
      return verifyTable(gather);
    if (auto ret = dyn_cast<func::ReturnOp>(op)) {
      EntrySignature signature(op->getParentOfType<func::FuncOp>());
      std::optional<unsigned> logits = signature.result(EntryRole::Logits),
                              hidden = signature.result(EntryRole::Hidden);
      if (hidden && failed(needs(op, ret.getOperand(*hidden), Role(StepRows::OfTokens))))
        return failure();
      return logits ? needs(op, ret.getOperand(*logits), Role(StepRows::OfOutputs)) : success();
    }
    SmallVector<StepOperand> roles = rolesOf(op);
    for (auto [value, role] : roles)
      if (value && failed(needs(op, value, Role(role))))
        return failure();
    return roles.empty() ? verifySameRoles(op) : success();
  }

private:
  Role roleOf(Value value) const {
    const auto *state = solver.lookupState<RoleLattice>(value);
    return state ? state->getValue() : Role();
  }

  /// Values in functions without calls have no roles; such functions are never run.
  LogicalResult needs(Operation *op, Value value, Role role) const {
    Role given = roleOf(value);
    if (given == role || given.isUnknown())
      return success();
    return op->emitOpError("expects an operand with role ")
           << role.name() << ", got " << given.name()
           << "; mica.role of the arguments of @main defines roles, and mica.select_rows turns "
              "token rows into logit rows";
  }

  static SmallVector<StepOperand> rolesOf(Operation *op) {
    if (auto roles = dyn_cast<HasStepRoles>(op))
      return roles.getStepRoles();
    auto update = dyn_cast<UpdatesState>(op);
    if (!update)
      return {};
    SmallVector<StepOperand> roles;
    for (Value rows : update.getTokenRows())
      roles.push_back({rows, StepRows::OfTokens});
    roles.push_back({update.getSequences(), EntryRole::Sequences});
    roles.push_back({update.getPositions(), EntryRole::Positions});
    return roles;
  }

  /// A table must have a row for every token of the vocabulary, or for every position.
  LogicalResult verifyTable(GathersRows embedding) const {
    bool ofPositions = roleOf(embedding.getTokens()) == Role(EntryRole::Positions);
    if (!ofPositions && failed(needs(embedding, embedding.getTokens(), Role(EntryRole::Tokens))))
      return failure();
    int64_t rows = embedding.getTableRows();
    int64_t needed = ofPositions ? maxPositions : vocabulary;
    if (rows >= needed)
      return success();
    StringRef what = ofPositions ? "position" : "token";
    return embedding->emitOpError("has a table with ")
           << rows << " rows, expected at least " << needed << ", one per " << what;
  }

  /// Ops must not combine token rows with logit rows.
  LogicalResult verifySameRoles(Operation *op) const {
    if (!isa_and_nonnull<MicaDialect>(op->getDialect()))
      return success();
    Role rows;
    for (Value operand : op->getOperands()) {
      Role role = roleOf(operand);
      if (role.isRows() && rows.isRows() && !(role == rows))
        return needs(op, operand, rows);
      if (role.isRows())
        rows = role;
    }
    return success();
  }

  const DataFlowSolver &solver;
  int64_t vocabulary = 0, maxPositions = INT64_MAX;
};
} // namespace

void mica::loadRoleAnalysis(DataFlowSolver &solver) { solver.load<RoleAnalysis>(); }

LogicalResult mica::verifyRoles(ModuleOp module, const DataFlowSolver &solver) {
  RoleCheck check(module, solver);
  return failure(
      module.walk([&](Operation *op) -> WalkResult { return check.verify(op); }).wasInterrupted());
}
