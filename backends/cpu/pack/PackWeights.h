//===- PackWeights.h - all weights of a module as one stream ----*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_PACKWEIGHTS_H
#define MICA_BACKENDS_CPU_PACK_PACKWEIGHTS_H

#include "backends/cpu/pack/CalibratedSource.h"
#include "ir/Mica/Mica.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mica::cpu {

struct PackOptions {
  /// Receives the bytes in order.
  llvm::function_ref<llvm::Error(llvm::ArrayRef<uint8_t>)> sink;
  /// Called after every piece with the bytes done and the total.
  llvm::function_ref<void(uint64_t done, uint64_t all)> progress;
  unsigned threads = 1;                         ///< that pack, besides the caller, which writes
  const ColumnImportance *importance = nullptr; ///< for quantized weights; null: none
  /// If several ranks run the module, the offset of each rank's weights from those of the previous
  /// one; at least packedBytes.
  uint64_t rankStride = 0;
  /// Called for each weight of the first rank with its bytes of padding; null: not called.
  llvm::function_ref<void(WeightOp weight, int64_t paddingBytes)> padding = nullptr;
};

/// The number of panels with `panelBytes` bytes in a batch for `threads` threads; at least one. Two
/// batches are in memory: one is written while the other is packed.
int64_t panelsPerBatch(int64_t panelBytes, unsigned threads);

/// The maximum size of a batch of several panels in bytes.
inline constexpr int64_t kMaxBatchBytes = 64 << 20;

/// Bytes of all weights of `module`, of one rank if several run it, as a program stores them.
uint64_t packedBytes(mlir::ModuleOp module);

/// Packs every `mica.weight` of `module`, which must have offsets (stage `kernels` or later), and
/// passes the bytes to the sink, with zeros between weights; of all ranks, one after the other, if
/// several run the module. Errors name the weight: a source that
/// is missing or does not match, a value that is not finite, overlapping offsets; errors of the
/// sink are returned.
llvm::Error packWeights(mlir::ModuleOp module, const WeightSource &source,
                        const PackOptions &options);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_PACKWEIGHTS_H
