//===- OpTable.cpp - what the functions of ops share ----------------------===//

#include "ir/Interpreter/OpTable.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mica::interp {

llvm::Error opError(Operation *op, const Twine &message) {
  std::string text;
  llvm::raw_string_ostream(text) << "'" << op->getName() << "' " << message << " (at "
                                 << op->getLoc() << ")";
  return llvm::createStringError(text);
}

llvm::Error checkSameRows(Operation *op, const Scope &scope, ArrayRef<mlir::Value> tensors) {
  int64_t rows = scope.tensor(tensors.front()).shape[0];
  for (mlir::Value value : tensors.drop_front())
    if (int64_t other = scope.tensor(value).shape[0]; other != rows)
      return opError(op, "has operands of " + Twine(rows) + " and of " + Twine(other) + " rows");
  return llvm::Error::success();
}

llvm::Error checkIndex(Operation *op, StringRef what, int64_t index, int64_t size) {
  if (index >= 0 && index < size)
    return llvm::Error::success();
  return opError(op, what + " " + Twine(index) + " is outside of [0, " + Twine(size) + ")");
}

SmallVector<Value> Scope::get(ValueRange range) const {
  return llvm::map_to_vector(range, [&](mlir::Value value) { return get(value); });
}

llvm::Error Scope::bind(mlir::Value name, Value value) {
  if (llvm::Error error = value.checkFits(name.getType()))
    return error;
  values[name] = std::move(value);
  return llvm::Error::success();
}

llvm::Error Scope::bind(ValueRange names, ArrayRef<Value> bound) {
  if (names.size() != bound.size())
    return llvm::createStringError(Twine(bound.size()) + " values for " + Twine(names.size()) +
                                   " names");
  for (auto [name, value] : llvm::zip_equal(names, bound))
    if (llvm::Error error = bind(name, value))
      return error;
  return llvm::Error::success();
}

Frame::Frame(Interpreter &interpreter, int64_t ranks) : interpreter(interpreter) {
  for (int64_t rank = 0; rank < ranks; ++rank)
    scopes.emplace_back(interpreter, rank);
}

RankValues Frame::get(ValueRange range) const {
  return llvm::map_to_vector<6>(scopes, [&](const Scope &scope) { return scope.get(range); });
}

llvm::Error Frame::bind(ValueRange names, ArrayRef<SmallVector<Value>> bound) {
  for (auto [scope, values] : llvm::zip_equal(scopes, bound))
    if (llvm::Error error = scope.bind(names, values))
      return error;
  return llvm::Error::success();
}

const OpFunction *OpTable::lookup(Operation *op) const {
  auto it = functions.find(op->getName().getStringRef());
  return it == functions.end() ? nullptr : &it->second;
}

SmallVector<StringRef> OpTable::names() const { return llvm::to_vector(functions.keys()); }

} // namespace mica::interp
