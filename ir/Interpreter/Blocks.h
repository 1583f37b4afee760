//===- Blocks.h - gate and up in alternating blocks -------------*- C++ -*-===//

#ifndef MICA_IR_INTERPRETER_BLOCKS_H
#define MICA_IR_INTERPRETER_BLOCKS_H

#include "ir/Mica/Mica.h"

namespace mica::interp {

/// The index of row (or column) i of matrix `part` after interleaving `parts` matrices in
/// alternating blocks of 64.
inline int64_t interleavedIndex(int64_t i, int64_t part, int64_t parts) {
  return (i / kBlockColumns * parts + part) * kBlockColumns + i % kBlockColumns;
}

inline int64_t gateIndex(int64_t i) { return interleavedIndex(i, 0, 2); }
inline int64_t upIndex(int64_t i) { return interleavedIndex(i, 1, 2); }

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_BLOCKS_H
