//===- Expect.cpp - functions that state their expected results -----------===//

#include "ir/Interpreter/Expect.h"

#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mica::interp {

static constexpr double kDefaultTolerance = 1e-6;

/// Quantized rows are compared by their dequantized values.
static Type comparedAs(Type element) {
  return isQuantized(element) ? Float32Type::get(element.getContext()) : element;
}

double distance(const Tensor &actual, const Tensor &expected) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (actual.shape != expected.shape ||
      comparedAs(actual.elementType) != comparedAs(expected.elementType))
    return infinite;
  if (!actual.isFloat())
    return actual.ints == expected.ints ? 0 : infinite;
  double difference = 0, largest = 0;
  for (auto [a, b] : llvm::zip_equal(actual.floats, expected.floats)) {
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    if (!std::isfinite(a) || !std::isfinite(b))
      return infinite;
    difference = std::max(difference, std::abs(double(a) - double(b)));
  }
  for (float b : expected.floats)
    if (std::isfinite(b))
      largest = std::max(largest, std::abs(double(b)));
  return difference == 0 ? 0 : difference / largest;
}

static double toleranceOf(func::FuncOp function) {
  auto stated = function->getAttrOfType<FloatAttr>(kToleranceAttr);
  return stated ? stated.getValueAsDouble() : kDefaultTolerance;
}

static llvm::Error checkOne(func::FuncOp function, size_t number, const Value &actual,
                            const Value &expected) {
  Value flat = actual.flattened();
  if (!flat.getTensor())
    return llvm::createStringError("result " + Twine(number) + " is not a tensor");
  double off = distance(*flat.getTensor(), *expected.getTensor()),
         tolerance = toleranceOf(function);
  if (off <= tolerance)
    return llvm::Error::success();
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "@" << function.getSymName() << ": result " << number << " differs by " << off
     << "; the tolerance is " << tolerance << ": got ";
  flat.print(os);
  os << ", expected ";
  expected.print(os);
  return llvm::createStringError(text);
}

static llvm::Error checkPairs(func::FuncOp function, ArrayRef<Value> results) {
  if (results.size() % 2 != 0 || results.empty())
    return llvm::createStringError("@" + function.getSymName() + " needs results in pairs");
  for (size_t number = 0; number < results.size(); number += 2) {
    Value expected = results[number + 1].flattened();
    if (!expected.getTensor())
      return llvm::createStringError("result " + Twine(number + 1) + " is not a tensor");
    if (llvm::Error error = checkOne(function, number, results[number], expected))
      return error;
  }
  return llvm::Error::success();
}

static llvm::Error checkResults(func::FuncOp function, ArrayRef<Value> results) {
  if (function->hasAttr(kExpectPairsAttr))
    return checkPairs(function, results);
  auto expected = function->getAttrOfType<ArrayAttr>(kExpectAttr);
  if (!expected || expected.size() != results.size())
    return llvm::createStringError("@" + function.getSymName() + " needs an array " + kExpectAttr +
                                   " of " + Twine(results.size()) + " attributes");
  for (auto [number, attribute] : llvm::enumerate(expected)) {
    if (isa<UnitAttr>(attribute))
      continue;
    auto elements = dyn_cast<ElementsAttr>(attribute);
    if (!elements)
      return llvm::createStringError("@" + function.getSymName() + " " + kExpectAttr + " " +
                                     Twine(number) + " is not a dense attribute");
    llvm::Expected<Tensor> tensor = tensorFrom(elements);
    if (!tensor)
      return tensor.takeError();
    if (llvm::Error error = checkOne(function, number, results[number], std::move(*tensor)))
      return error;
  }
  return llvm::Error::success();
}

bool hasExpectation(func::FuncOp function) {
  return function->hasAttr(kExpectAttr) || function->hasAttr(kExpectPairsAttr) ||
         function->hasAttr(kExpectErrorAttr);
}

llvm::Error checkExpected(func::FuncOp function, llvm::Expected<SmallVector<Value>> outcome) {
  auto expectedError = function->getAttrOfType<StringAttr>(kExpectErrorAttr);
  if (!expectedError)
    return outcome ? checkResults(function, *outcome) : outcome.takeError();
  if (outcome)
    return llvm::createStringError("@" + function.getSymName() + " must fail, but returned");
  std::string message = llvm::toString(outcome.takeError());
  if (StringRef(message).contains(expectedError.getValue()))
    return llvm::Error::success();
  return llvm::createStringError("@" + function.getSymName() +
                                 " fails with another error: " + message);
}

} // namespace mica::interp
