//===- PackWeights.h - all weights of a module as one stream ----*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_PACKWEIGHTS_H
#define MICA_BACKENDS_CPU_PACK_PACKWEIGHTS_H

#include "backends/cpu/pack/CalibratedSource.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mica::cpu {

struct PackOptions {
  /// Receives the bytes in order.
  llvm::function_ref<llvm::Error(llvm::ArrayRef<uint8_t>)> sink;
  /// Is called after every piece with the bytes done and the total.
  llvm::function_ref<void(uint64_t done, uint64_t all)> progress;
  unsigned threads = 1;                         ///< that pack, while the one that calls hands over
  const ColumnImportance *importance = nullptr; ///< for what is quantized; null: none
};

/// Panels of so many bytes that are packed together by so many threads; at least one. Two batches
/// are in memory: one is written while the other is packed.
int64_t panelsPerBatch(int64_t panelBytes, unsigned threads);

/// The most bytes of a batch of several panels.
inline constexpr int64_t kMaxBatchBytes = 64 << 20;

/// Bytes of all weights of `module` as a program stores them.
uint64_t packedBytes(mlir::ModuleOp module);

/// Packs every `mica.weight` of `module`, which must have offsets (stage `kernels` or later), and
/// hands the bytes to the sink, zeros between weights. Errors name the weight: a source that is
/// missing or does not fit, a number that is not finite, offsets that overlap; and what the sink
/// returns.
llvm::Error packWeights(mlir::ModuleOp module, const WeightSource &source,
                        const PackOptions &options);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_PACKWEIGHTS_H
