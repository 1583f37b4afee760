//===- Expect.cpp - functions that state their own results ------------------------------===//

#include "ir/Interpreter/Expect.h"

#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mica::interp {

static constexpr double kDefaultTolerance = 1e-6;

double distance(const Tensor &actual, const Tensor &expected) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (actual.shape != expected.shape || actual.elementType != expected.elementType)
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

static llvm::Error checkOne(func::FuncOp function, size_t number, const Value &actual,
                            ElementsAttr attribute) {
  llvm::Expected<Tensor> expected = tensorFrom(attribute);
  if (!expected)
    return expected.takeError();
  double tolerance = kDefaultTolerance;
  if (auto stated = function->getAttrOfType<FloatAttr>(kToleranceAttr))
    tolerance = stated.getValueAsDouble();
  Value flat = actual.flattened();
  if (!flat.getTensor())
    return llvm::createStringError("result " + Twine(number) + " is no tensor");
  double off = distance(*flat.getTensor(), *expected);
  if (off <= tolerance)
    return llvm::Error::success();
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "@" << function.getSymName() << " result " << number << " is off by " << off
     << ", allowed is " << tolerance << "\n  actual   ";
  flat.print(os);
  os << "\n  expected ";
  Value(std::move(*expected)).print(os);
  return llvm::createStringError(text);
}

static llvm::Error checkResults(func::FuncOp function, ArrayRef<Value> results) {
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
                                     Twine(number) + " is no dense attribute");
    if (llvm::Error error = checkOne(function, number, results[number], elements))
      return error;
  }
  return llvm::Error::success();
}

bool hasExpectation(func::FuncOp function) {
  return function->hasAttr(kExpectAttr) || function->hasAttr(kExpectErrorAttr);
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
                                 " must fail otherwise; its error: " + message);
}

} // namespace mica::interp
