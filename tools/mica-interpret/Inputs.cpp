//===- Inputs.cpp - arguments of functions --------------------------------===//

#include "tools/mica-interpret/Inputs.h"

#include "ir/Interpreter/Npy.h"
#include "ir/Mica/Mica.h"

using namespace mlir;

namespace mica::tool {

/// An empty cache with the size given by --cache, BATCHxPOSITIONS.
static llvm::Expected<interp::Value> makeCache(SequenceState type, StringRef size) {
  auto [batchText, positionsText] = size.split('x');
  int64_t batch, positions;
  if (batchText.getAsInteger(10, batch) || positionsText.getAsInteger(10, positions) || batch < 1 ||
      positions < 1)
    return llvm::createStringError("--cache " + size +
                                   ": write BATCHxPOSITIONS, for instance 2x64");
  if (llvm::Error error = interp::checkSize(interp::extentsOf(type, batch, positions)))
    return llvm::createStringError("--cache " + size + ": " + llvm::toString(std::move(error)));
  return interp::Value::makeCache(type, batch, positions);
}

llvm::Expected<interp::Value> readInput(StringRef path, Type type) {
  llvm::Expected<interp::NpyArray> array = interp::readNpy(path);
  if (!array)
    return array.takeError();
  llvm::Expected<interp::Tensor> tensor = interp::toTensor(*array, getElementTypeOrSelf(type));
  if (!tensor)
    return llvm::createStringError(path + ": " + llvm::toString(tensor.takeError()));
  if (type.isIntOrIndex() && tensor->getNumElements() == 1)
    return interp::Value(tensor->ints.front());
  return interp::Value(std::move(*tensor));
}

llvm::Expected<SmallVector<interp::Value>> makeArguments(func::FuncOp function,
                                                         const InterpretOptions &options) {
  SmallVector<interp::Value> args;
  ArrayRef<std::string> inputs = options.inputs;
  for (Type type : function.getArgumentTypes()) {
    auto cache = dyn_cast<SequenceState>(type);
    if (!cache && inputs.empty())
      return llvm::createStringError("@" + function.getSymName() +
                                     " has more arguments than there are --input");
    llvm::Expected<interp::Value> arg =
        cache ? makeCache(cache, options.cache) : readInput(inputs.front(), type);
    if (!arg)
      return arg.takeError();
    if (!cache)
      inputs = inputs.drop_front();
    args.push_back(std::move(*arg));
  }
  if (!inputs.empty())
    return llvm::createStringError("--input " + inputs.front() + " has no argument in @" +
                                   function.getSymName());
  return args;
}

} // namespace mica::tool
