//===- CalibratedSource.cpp - tensors and the importance of columns -------===//

#include "backends/cpu/pack/CalibratedSource.h"

#include <cmath>

namespace mica::cpu {

bool ColumnImportance::add(llvm::StringRef name, std::vector<float> meanSquares) {
  double sum = 0;
  for (float square : meanSquares) {
    if (!std::isfinite(square) || square < 0)
      return false;
    sum += square;
  }
  // Without statistics, all columns have the same weight.
  if (sum == 0)
    return true;
  // Columns whose activations were zero on the calibration text must keep some weight.
  constexpr double min = 1e-3;
  double mean = sum / static_cast<double>(meanSquares.size());
  for (float &square : meanSquares)
    square = static_cast<float>(std::max(square / mean, min));
  columns[name] = std::move(meanSquares);
  return true;
}

llvm::ArrayRef<float> ColumnImportance::find(const TensorPart &part) const {
  auto known = columns.find(part.text());
  if (known == columns.end())
    known = columns.find(part.tensor);
  return known == columns.end() ? llvm::ArrayRef<float>() : llvm::ArrayRef(known->second);
}

llvm::Expected<SourceTensor> CalibratedSource::find(mlir::Attribute named) const {
  llvm::Expected<SourceTensor> tensor = source.find(named);
  if (!tensor || !importance)
    return tensor;
  TensorPart part = TensorPart::of(named);
  llvm::ArrayRef<float> columns = importance->find(part);
  if (!columns.empty() && !tensor->shape.empty() &&
      static_cast<int64_t>(columns.size()) != tensor->shape.back())
    return llvm::createStringError(
        "\"" + part.text() + "\" has " + llvm::Twine(tensor->shape.back()) +
        " columns, but the statistics in " + importance->fileName() + " are for " +
        llvm::Twine(columns.size()) + "; use those of this model");
  tensor->importance = columns;
  return tensor;
}

} // namespace mica::cpu
