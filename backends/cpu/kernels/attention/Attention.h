//===- Attention.h - kernels of attention -----------------------*- C++ -*-===//
//
// All functions take the builder and the kernel's arguments (begin, end, buffers...) in the order
// of the comment, and emit the work of the tasks [begin, end). See the folder's README.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_ATTENTION_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_ATTENTION_H

#include "backends/cpu/kernels/attention/AttentionSpec.h"

namespace mica::cpu {

/// q [T, H, D], k cache, v cache, layer, sequences, positions, (sinks [H]), y [T, H, D]. A task is
/// a group of query heads with a common key/value head, and a tile of rows.
void emitAttention(KernelBuilder &b, mlir::ValueRange args, const AttentionSpec &spec);

/// q, k cache, v cache, layer, sequences, positions, N (maximum number of chunks of a row),
/// (sinks), parts [T', max chunks, H, state width], y: rows with one chunk write y, others parts. A
/// task is a group of query heads with a common key/value head, one of N chunks and a row.
void emitAttentionChunks(KernelBuilder &b, mlir::ValueRange args, const AttentionSpec &spec);

/// positions, parts, (sinks), y: the rows of y with several chunks. A task is a query head of a
/// row.
void emitAttentionCombine(KernelBuilder &b, mlir::ValueRange args, const AttentionSpec &spec);

/// The number of chunks to which a row at `position` attends.
mlir::Value emitChunkCount(KernelBuilder &b, mlir::Value position, const AttentionSpec &spec);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_ATTENTION_H
