//===- Attention.h - kernels of attention -----------------------*- C++ -*-===//
//
// All take the builder and the kernel's arguments (begin, end, buffers...) in the order that the
// comment gives, and emit the work of the tasks [begin, end). See the folder's README.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_ATTENTION_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_ATTENTION_H

#include "backends/cpu/kernels/attention/AttentionSpec.h"

namespace mica::cpu {

/// q [T, H, D], k cache, v cache, layer, sequences, positions, (sinks [H]), y [T, H, D]. A task is
/// some query heads of a key/value head and a tile of rows.
void emitAttention(KernelBuilder &b, mlir::ValueRange args, const AttentionSpec &spec);

/// q, k cache, v cache, layer, sequences, positions, N (the most chunks of a row), (sinks), parts
/// [T', most chunks, H, state width], y: rows that see one chunk get y, others parts. A task is
/// some query heads of a key/value head, one of N chunks and a row.
void emitAttentionChunks(KernelBuilder &b, mlir::ValueRange args, const AttentionSpec &spec);

/// positions, parts, (sinks), y: the other rows of y. A task is a query head of a row.
void emitAttentionCombine(KernelBuilder &b, mlir::ValueRange args, const AttentionSpec &spec);

/// How many chunks a row at `position` sees.
mlir::Value emitChunkCount(KernelBuilder &b, mlir::Value position, const AttentionSpec &spec);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_ATTENTION_H
