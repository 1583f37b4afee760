//===- Positions.h - kernels of rope and caches -----------------*- C++ -*-===//
//
// All functions take the builder and the kernel's arguments (begin, end, buffers...) in the order
// of the comment, and emit the work of the tasks [begin, end). See the folder's README.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_POSITIONS_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_POSITIONS_H

#include "backends/cpu/kernels/KernelBuilder.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// The frequencies are a constant table: those of a short sequence [P], followed by those [P] of a
/// sequence longer than `lengthThreshold`, unless theta grows.
struct RopeSpec {
  mlir::memref::GlobalOp frequencies;
  int64_t pairs;
  double theta;
  std::optional<int64_t> lengthThreshold; ///< if frequencies depend on the length
  double growth = 0;                      ///< the factor of dynamic scaling
  float amplitude = 1;
};

/// positions i32 [T], (lengths i32 [T]), y [T, 2, P]: formula of mica.rope_table. A task is a row.
void emitRopeTable(KernelBuilder &b, mlir::ValueRange args, const RopeSpec &spec);

/// x [T, H, D], table [T, 2, P], y [T, H, D]. A task is a row.
void emitRope(KernelBuilder &b, mlir::ValueRange args, Pairing pairing);

/// positions, y [T, C]: formula of mica.sinusoid. A task is a row.
void emitSinusoid(KernelBuilder &b, mlir::ValueRange args, mlir::memref::GlobalOp frequencies,
                  int64_t offset, std::optional<int64_t> paddingIdx);

/// a, b, y [T, H, D]: formula of mica.concat_heads. A task is a row.
void emitConcatHeads(KernelBuilder &b, mlir::ValueRange args);

/// x [T, G, D], sequences, positions, layer, cache: formula of mica.kv_append. A task is a row.
void emitKvAppend(KernelBuilder &b, mlir::ValueRange args, KvCacheType cache);

/// qkv [T, (H + 2G) D] or the first of several matmul results with these columns, table, sequences,
/// positions, layer, (q norm, k norm weights), (the other results), q [T, H, D], k cache, v cache:
/// formula of mica.qkv_append. A task is a row.
struct QkvAppendSpec {
  int64_t heads;
  KvCacheType keys, values;
  Pairing pairing;
  std::optional<double> eps;
  float weightOffset = 0;
  int64_t parts = 0; ///< matmul results besides the first
};
void emitQkvAppend(KernelBuilder &b, mlir::ValueRange args, const QkvAppendSpec &spec);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_POSITIONS_H
