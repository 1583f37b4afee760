//===- CalibratedSource.h - tensors and the importance of columns ---------===//
#ifndef MICA_BACKENDS_CPU_PACK_CALIBRATEDSOURCE_H
#define MICA_BACKENDS_CPU_PACK_CALIBRATEDSOURCE_H

#include "backends/cpu/pack/WeightSource.h"
#include "ir/Mica/TensorPart.h"

#include "llvm/ADT/StringMap.h"

#include <vector>

namespace mica::cpu {

/// The weights of quantization errors by column of a tensor: the mean square of the activation that
/// the column is multiplied by, scaled to a mean of 1. Keyed by the source of a weight as text
/// (TensorPart::text).
class ColumnImportance {
public:
  /// `file` is the file of the statistics, for error messages.
  explicit ColumnImportance(llvm::StringRef file = "") : file(file) {}

  /// Adds the mean squares for `name`. Returns false if one is negative or not finite.
  bool add(llvm::StringRef name, std::vector<float> meanSquares);
  /// The importance of the columns of a tensor or a part of one; empty if it is unknown.
  llvm::ArrayRef<float> find(const TensorPart &part) const;
  size_t size() const { return columns.size(); }
  llvm::StringRef fileName() const { return file; }

private:
  std::string file;
  llvm::StringMap<std::vector<float>> columns;
};

/// Adds the importance of columns to the tensors of another source.
class CalibratedSource final : public PartSource {
public:
  /// Both must outlive this object. Without `importance`, all columns have the same weight.
  CalibratedSource(const PartSource &source, const ColumnImportance *importance)
      : source(source), importance(importance) {}

  llvm::Expected<SourceTensor> find(mlir::Attribute part) const override;
  std::string fileOf(mlir::Attribute part) const override { return source.fileOf(part); }
  void release(mlir::Attribute part) const override { source.release(part); }

private:
  const PartSource &source;
  const ColumnImportance *importance;
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_CALIBRATEDSOURCE_H
