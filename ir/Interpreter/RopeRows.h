//===- RopeRows.h - the angles of a step's rows -----------------*- C++ -*-===//

#ifndef MICA_IR_INTERPRETER_ROPEROWS_H
#define MICA_IR_INTERPRETER_ROPEROWS_H

#include "ir/Interpreter/Formulas.h"
#include "ir/Interpreter/OpTable.h"

namespace mica::interp {

/// Of mica.rope or mica.rope_table, whose operands have the same rows.
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
  mlir::Attribute scaling;
  llvm::ArrayRef<int64_t> positions, lengths; ///< lengths: empty where the scaling follows none
  std::optional<int64_t> length;              ///< that the frequencies belong to
  llvm::SmallVector<float> frequencies;
  float amplitude = 1;
};

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_ROPEROWS_H
