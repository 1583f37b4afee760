//===- EqualizedSource.h - tensors as mica.equalize scales them -*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_EQUALIZEDSOURCE_H
#define MICA_BACKENDS_CPU_PACK_EQUALIZEDSOURCE_H

#include "backends/cpu/pack/WeightSource.h"
#include "ir/Mica/Equalize.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/ThreadPool.h"

namespace mica::cpu {

/// Adds factors to what another source has. They are made from the magnitudes of the tensors when
/// the first of these is asked for.
class EqualizedSource final : public PartSource {
public:
  /// All must live as long as this.
  EqualizedSource(mlir::ModuleOp module, const PartSource &source, llvm::ThreadPoolInterface &pool)
      : source(source), pool(pool), balancing(findEqualization(module)) {}

  llvm::Expected<SourceTensor> find(mlir::Attribute part) const override;
  std::string fileOf(mlir::Attribute part) const override { return source.fileOf(part); }
  void release(mlir::Attribute part) const override { source.release(part); }

private:
  /// What rows and what columns are multiplied with.
  struct Factors {
    llvm::SmallVector<float> rows, columns;
  };
  llvm::Expected<const Factors *> factorsOf(EqualizeOp op) const;

  const PartSource &source;
  llvm::ThreadPoolInterface &pool;
  llvm::DenseMap<mlir::Attribute, Equalization> balancing;
  mutable llvm::DenseMap<mlir::Operation *, std::unique_ptr<Factors>> known;
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_EQUALIZEDSOURCE_H
