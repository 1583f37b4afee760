//===- RopeRows.h - rope angles of a step's rows ----------------*- C++ -*-===//

#ifndef MICA_IR_INTERPRETER_ROPEROWS_H
#define MICA_IR_INTERPRETER_ROPEROWS_H

#include "ir/Interpreter/Formulas.h"
#include "ir/Interpreter/OpTable.h"
#include "ir/Mica/RopeFrequencies.h"

namespace mica::interp {

/// The angles of each row of mica.rope or mica.rope_table, whose operands must have the same number
/// of rows.
class RopeRows {
public:
  template <typename Op>
  RopeRows(Op op, int64_t rotaryDim, const Scope &scope)
      : rotaryDim(rotaryDim), theta(op.getTheta().convertToDouble()), scaling(op.getScalingAttr()),
        positions(scope.tensor(op.getPositions()).ints) {
    if (op.getLengths())
      lengths = scope.tensor(op.getLengths()).ints;
  }

  Angles at(int64_t row) {
    int64_t own = lengths.empty() ? 0 : lengths[row];
    if (length != own)
      frequencies = ropeFrequencies(rotaryDim, theta, scaling, own, amplitude);
    length = own;
    return anglesAt(positions[row], frequencies, amplitude);
  }

private:
  int64_t rotaryDim;
  double theta;
  RopeScalingAttr scaling;
  llvm::ArrayRef<int64_t> positions, lengths; ///< [T]; lengths are empty if the scaling does not
                                              ///< depend on them
  std::optional<int64_t> length;              ///< for which `frequencies` were computed
  llvm::SmallVector<float> frequencies;
  float amplitude = 1;
};

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_ROPEROWS_H
