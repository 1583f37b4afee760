//===- CalibratedSource.h - tensors and what their errors weigh -*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_CALIBRATEDSOURCE_H
#define MICA_BACKENDS_CPU_PACK_CALIBRATEDSOURCE_H

#include "backends/cpu/pack/WeightSource.h"
#include "ir/Mica/TensorPart.h"

#include "llvm/ADT/StringMap.h"

#include <vector>

namespace mica::cpu {

/// What errors weigh in each column of a tensor: the mean square of the activation that the column
/// multiplies, scaled to a mean of 1. By what weights are made of, in words (TensorPart::text).
class ColumnImportance {
public:
  /// `file` is named by errors: what the statistics are from.
  explicit ColumnImportance(llvm::StringRef file = "") : file(file) {}

  /// Takes over the mean squares for `name`. Returns false where one is negative or not finite.
  bool add(llvm::StringRef name, std::vector<float> meanSquares);
  /// Of a tensor or a part of it; empty where it is not known.
  llvm::ArrayRef<float> find(const TensorPart &part) const;
  size_t size() const { return columns.size(); }
  llvm::StringRef fileName() const { return file; }

private:
  std::string file;
  llvm::StringMap<std::vector<float>> columns;
};

/// Adds importance to what another source has.
class CalibratedSource final : public PartSource {
public:
  /// Both must live as long as this. Without `importance` all columns weigh alike.
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
