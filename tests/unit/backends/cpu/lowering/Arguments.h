//===- Arguments.h - random arguments for functions of mica ops -*- C++ -*-===//
//
// Attributes of a function's arguments describe their values; float tensors without attributes are
// random.
//
//   tensor<?xi32>  {test.below = N}       numbers in [0, N)
//                  {test.sequences}       each row's sequence in a ragged batch of four, and
//                  {test.positions}       its position there; the sequences begin at different
//                  depths
//   tensor<?xkxi32> {test.among = [...]}  the numbers of the list, each at most once in a row
//   any tensor     {test.rows = N}        N rows, independent of the step
//   floats         {test.uneven}          rows changed by makeUneven, for rows with scales
//                  {test.extreme}         equal magnitudes: all positive, all negative, alternating
//   a cache or another state              filled: values after a row's position are stale
//
//===----------------------------------------------------------------------===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_ARGUMENTS_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_ARGUMENTS_H

#include "ir/Interpreter/Value.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mica::test {

/// Arguments for a step with `rows` rows, the same in every run.
llvm::SmallVector<interp::Value> randomArguments(mlir::func::FuncOp function, int64_t rows);

/// The rows [begin, end) of all arguments with the step's rows; other arguments unchanged.
llvm::SmallVector<interp::Value> sliceRows(mlir::func::FuncOp function,
                                           llvm::ArrayRef<interp::Value> arguments, int64_t begin,
                                           int64_t end);

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_ARGUMENTS_H
