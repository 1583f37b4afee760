//===- Roles.cpp - every op takes the row vector of its role --------------===//
//
// The tokens, sequences, positions, logit_indices and lengths of a step have one type, and so have
// the rows of tokens and the rows of logits. Neither a kernel nor the program checks the numbers,
// and each vector is only known to stay inside its own bounds. So what a value is, is followed from
// the arguments of the entries through calls and loops.
//
//===----------------------------------------------------------------------===//

#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/ModelDescription.h"
#include "passes/verify/Checks.h"

#include "mlir/Analysis/DataFlow/SparseAnalysis.h"
#include "mlir/Analysis/DataFlowFramework.h"

using namespace mlir;
using namespace mica;

namespace {
/// What a value is for a step. The first five are vectors that an entry takes.
class Role {
public:
  enum Kind {
    Tokens,
    Sequences,
    Positions,
    LogitIndices,
    Lengths,
    TokenRows,
    OutputRows,
    Other,
    Unknown
  };

  Role(Kind kind = Unknown) : kind(kind) {} // NOLINT: a kind is a role

  /// What an argument of an entry is.
  static Role of(EntryRole role) {
    switch (role) {
    case EntryRole::Tokens:
      return Tokens;
    case EntryRole::Sequences:
      return Sequences;
    case EntryRole::Positions:
      return Positions;
    case EntryRole::LogitIndices:
      return LogitIndices;
    case EntryRole::Lengths:
      return Lengths;
    case EntryRole::Cache:
    case EntryRole::Weights:
    case EntryRole::Scratch:
    case EntryRole::Logits:
      return Other;
    }
    llvm_unreachable("all roles are handled above");
  }

  static Role join(const Role &a, const Role &b) {
    if (a.kind == Unknown || b.kind == Unknown)
      return a.kind == Unknown ? b : a;
    return a.kind == b.kind ? a : Role(Other);
  }

  bool operator==(const Role &other) const = default;
  bool isRows() const { return kind == TokenRows || kind == OutputRows; }

  StringRef name() const {
    static constexpr StringLiteral names[] = {
        "tokens",         "sequences",      "positions",      "logit_indices",         "lengths",
        "rows of tokens", "rows of logits", "something else", "what is never computed"};
    return names[kind];
  }

  void print(raw_ostream &os) const { os << name(); }

private:
  Kind kind;
};

using RoleLattice = dataflow::Lattice<Role>;

/// Follows roles forward.
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
    propagateIfChanged(lattice, lattice->join(role ? Role::of(*role) : Role(Role::Other)));
  }

private:
  /// Ops work row by row: what they make of rows are rows of the same. Before all operands are
  /// known nothing is.
  static Role resultOf(Operation *op, ArrayRef<const RoleLattice *> operands) {
    if (isa<EmbeddingOp, RopeTableOp, SinusoidOp>(op))
      return Role::TokenRows;
    if (isa<SelectRowsOp>(op))
      return Role::OutputRows;
    Role rows;
    for (const RoleLattice *operand : operands)
      if (operand->getValue() == Role::Unknown)
        return Role::Unknown;
      else if (operand->getValue().isRows())
        rows = Role::join(rows, operand->getValue());
    return rows == Role::Unknown ? Role(Role::Other) : rows;
  }
};

/// Compares what ops are given with what they need.
class RoleCheck {
public:
  RoleCheck(ModuleOp module, const DataFlowSolver &solver) : solver(solver) {
    vocabulary = getVocabulary(module);
    if (Attribute attribute = module->getAttr("mica.model"))
      if (auto model =
              readModelDescription(attribute, vocabulary, [&] { return module.emitOpError(); });
          succeeded(model))
        maxPositions = model->maxPositions;
  }

  LogicalResult verify(Operation *op) const {
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](EmbeddingOp embedding) { return verifyTable(embedding); })
        .Case([&](RopeOp rope) {
          return failure(failed(needs(op, rope.getX(), Role::TokenRows)) ||
                         failed(verifyRotated(rope)));
        })
        .Case([&](RopeTableOp table) { return verifyRotated(table); })
        .Case([&](SinusoidOp made) { return needs(op, made.getPositions(), Role::Positions); })
        .Case([&](UpdatesState update) { return verifyPlaced(update, update.getTokenRows()); })
        .Case([&](AttentionOp attention) { return verifyPlaced(attention, attention.getQ()); })
        .Case([&](SelectRowsOp select) {
          return failure(failed(needs(op, select.getX(), Role::TokenRows)) ||
                         failed(needs(op, select.getRows(), Role::LogitIndices)));
        })
        .Case([&](func::ReturnOp ret) {
          std::optional<unsigned> logits =
              EntrySignature(op->getParentOfType<func::FuncOp>()).result(EntryRole::Logits);
          return logits ? needs(op, ret.getOperand(*logits), Role::OutputRows) : success();
        })
        .Default([&](Operation *) { return verifyAlike(op); });
  }

private:
  Role roleOf(Value value) const {
    const auto *state = solver.lookupState<RoleLattice>(value);
    return state ? state->getValue() : Role();
  }

  /// A function that nothing calls has no roles, and is never run.
  LogicalResult needs(Operation *op, Value value, Role role) const {
    Role given = roleOf(value);
    if (given == role || given == Role::Unknown)
      return success();
    return op->emitOpError("takes ") << role.name() << ", but is given " << given.name()
                                     << ": mica.role of each argument of @main says what it is, "
                                        "and mica.select_rows makes rows "
                                        "of logits of rows of tokens";
  }

  LogicalResult verifyRotated(RotatesByPosition op) const {
    return failure(failed(needs(op, op.getPositions(), Role::Positions)) ||
                   (op.getLengths() && failed(needs(op, op.getLengths(), Role::Lengths))));
  }

  template <typename Op> LogicalResult verifyPlaced(Op op, ArrayRef<Value> tokenRows) const {
    for (Value rows : tokenRows)
      if (failed(needs(op, rows, Role::TokenRows)))
        return failure();
    return failure(failed(needs(op, op.getSequences(), Role::Sequences)) ||
                   failed(needs(op, op.getPositions(), Role::Positions)));
  }

  /// A table has a row for every token that a program accepts; one of positions, for each of them.
  LogicalResult verifyTable(EmbeddingOp embedding) const {
    bool ofPositions = roleOf(embedding.getTokens()) == Role::Positions;
    if (!ofPositions && failed(needs(embedding, embedding.getTokens(), Role::Tokens)))
      return failure();
    int64_t rows = cast<RankedTensorType>(embedding.getTable().getType()).getDimSize(0),
            needed = ofPositions ? maxPositions : vocabulary;
    if (rows >= needed)
      return success();
    StringRef what = ofPositions ? "positions" : "tokens, as many as logits";
    return embedding.emitOpError("has a table of ")
           << rows << " rows, but there are " << needed << " " << what << ": add a row for each";
  }

  /// Rows are computed with rows of the same.
  LogicalResult verifyAlike(Operation *op) const {
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
