//===- EqualizedSource.h - tensors scaled by mica.equalize ------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_EQUALIZEDSOURCE_H
#define MICA_BACKENDS_CPU_PACK_EQUALIZEDSOURCE_H

#include "backends/cpu/pack/WeightSource.h"
#include "ir/Mica/Equalize.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/ThreadPool.h"

namespace mica::cpu {

/// Adds the factors of mica.equalize to the tensors of another source. They are computed from the
/// magnitudes of the tensors when they are first needed.
class EqualizedSource final : public PartSource {
public:
  /// All must outlive this object.
  EqualizedSource(mlir::ModuleOp module, const PartSource &source, llvm::ThreadPoolInterface &pool)
      : source(source), pool(pool), equalizations(findEqualization(module)) {}

  llvm::Expected<SourceTensor> find(mlir::Attribute part) const override;
  std::string fileOf(mlir::Attribute part) const override { return source.fileOf(part); }
  void release(mlir::Attribute part) const override { source.release(part); }

private:
  /// The factors by which rows and columns are multiplied.
  struct Factors {
    llvm::SmallVector<float> rows, columns;
  };
  llvm::Expected<const Factors *> factorsOf(EqualizeOp op) const;

  const PartSource &source;
  llvm::ThreadPoolInterface &pool;
  llvm::DenseMap<mlir::Attribute, Equalization> equalizations;
  mutable llvm::DenseMap<mlir::Operation *, std::unique_ptr<Factors>> known;
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_EQUALIZEDSOURCE_H
