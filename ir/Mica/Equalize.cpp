//===- Equalize.cpp - cross-layer equalization ----------------------------===//

#include "ir/Mica/Equalize.h"
#include "ir/Quantize/Quantize.h"

#include <algorithm>
#include <cmath>
#include <optional>

using namespace mlir;
using namespace mica;

LogicalResult EqualizeOp::verify() {
  if (getRows().empty() || getColumns().empty())
    return emitOpError("needs a tensor on both sides");
  return success();
}

llvm::DenseMap<Attribute, Equalization> mica::findEqualization(ModuleOp module) {
  llvm::DenseMap<Attribute, Equalization> result;
  for (EqualizeOp op : module.getOps<EqualizeOp>()) {
    for (Attribute source : op.getRows())
      result[source].rows = op;
    for (Attribute source : op.getColumns())
      result[source].columns = op;
  }
  return result;
}

float mica::rowOffset(EqualizeOp op) {
  return static_cast<float>(op.getOffset().convertToDouble());
}

/// Whether a channel can be equalized: its ratio is neither zero, infinite nor NaN.
static bool counts(double ratio) { return ratio > 0 && !std::isinf(ratio); }

/// The median of the ratios that count, the lower one of two middle elements; nullopt if there are
/// none.
static std::optional<double> median(ArrayRef<double> ratios) {
  SmallVector<double> sorted = llvm::filter_to_vector(ratios, counts);
  if (sorted.empty())
    return std::nullopt;
  auto middle = sorted.begin() + (sorted.size() - 1) / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

void mica::raiseToShares(MutableArrayRef<float> columns, ArrayRef<float> row) {
  assert(columns.size() == row.size() && "an entry of every column");
  float inverse = 1 / largestMagnitude(row);
  if (!std::isfinite(inverse))
    return;
  for (size_t i = 0, count = row.size(); i < count; ++i)
    columns[i] = std::max(columns[i], std::abs(row[i]) * inverse);
}

SmallVector<float> mica::equalizationFactors(ArrayRef<float> rows, ArrayRef<float> columns) {
  SmallVector<double> ratios = llvm::map_to_vector(llvm::zip_equal(rows, columns), [](auto pair) {
    return double(std::get<0>(pair)) / std::get<1>(pair);
  });
  // Most channels have similar ratios: a rounding boundary among them would scale similar channels
  // differently by a factor of two.
  double usual = median(ratios).value_or(1);
  return llvm::map_to_vector(ratios, [usual](double ratio) -> float {
    if (!counts(ratio))
      return 1;
    // ratio / usual = m 2^exponent with m in [1/2, 1).
    int exponent;
    std::frexp(ratio / usual, &exponent);
    return std::ldexp(1.0f, std::clamp(exponent >> 1, -126, 127));
  });
}
