//===- Weight.cpp - reading weights and entries of lists ------------------===//

#include "ir/Interpreter/Interpreter.h"
#include "ir/Interpreter/OpTable.h"

using namespace mlir;

namespace mica::interp {

static llvm::Expected<Value> evalGetWeight(GetWeightOp op, Scope &scope) {
  auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, op.getWeightAttr());
  return scope.interpreter.weight(weight, scope.rank);
}

// y = weights[index].
static llvm::Expected<Value> evalSelectWeight(SelectWeightOp op, Scope &scope) {
  int64_t index = scope.scalar(op.getIndex());
  if (llvm::Error error = checkIndex(op, "index", index, op.getWeights().size()))
    return error;
  auto name = cast<FlatSymbolRefAttr>(op.getWeights()[index]);
  return scope.interpreter.weight(SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, name),
                                  scope.rank);
}

// y = numbers[index].
static llvm::Expected<Value> evalIndexTable(IndexTableOp op, Scope &scope) {
  int64_t index = scope.scalar(op.getIndex());
  if (llvm::Error error = checkIndex(op, "index", index, op.getNumbers().size()))
    return error;
  return Value(op.getNumbers()[index]);
}

void addWeightOps(OpTable &table) {
  table.add(evalGetWeight);
  table.add(evalSelectWeight);
  table.add(evalIndexTable);
}

} // namespace mica::interp
