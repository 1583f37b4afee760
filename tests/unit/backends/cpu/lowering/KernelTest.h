//===- KernelTest.h - kernels compared with the interpreter -----*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_KERNELTEST_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_KERNELTEST_H

#include "tests/unit/backends/cpu/lowering/KernelHarness.h"
#include "tests/unit/backends/cpu/lowering/Tolerance.h"
#include "tests/unit/backends/cpu/lowering/Words.h"

#include "gtest/gtest.h"

namespace mica::test {

/// A function of a table.
struct KernelCase {
  std::string name; ///< of the function
  std::string text; ///< the function and its weights; Arguments.h describes their attributes
  Tolerance tolerance;
  /// Whether every row is computed separately, so that results do not depend on how rows are split.
  bool exactRows = true;
  /// Whether all results are bit-identical for two or more rows: oneDNN sums a single row in
  /// another order, but programs never use it for a single row.
  bool equalResults = false;
  /// Whether it is run with up to about a hundred rows, instead of up to `maxRows`.
  bool largeBatch = false;
  int64_t maxRows = 33;
};

/// A case of a table. `{name}` in the text is the case's name, whose own placeholders are replaced
/// first.
KernelCase makeCase(std::string name, std::string text, const Words &words,
                    Tolerance tolerance = {});

/// The checks of all kernel tests.
class KernelChecks : public testing::Test {
protected:
  /// Compiles all functions of a table in one module, and checks each of them: compared with the
  /// interpreter for several numbers of rows, for splits of the rows into two steps, and for splits
  /// of the tasks of every launch.
  void check(llvm::StringRef targetName, llvm::ArrayRef<KernelCase> cases);

private:
  void checkNumbers(const KernelCase &row);
  void checkCutsOfRows(const KernelCase &row);
  void checkCutsOfTasks(const KernelCase &row);
  void checkCutsOfTasks(const KernelCase &row, int64_t rows);
  llvm::SmallVector<interp::Value> run(const KernelCase &row,
                                       llvm::ArrayRef<interp::Value> arguments);

  std::unique_ptr<KernelModule> module;
};

/// Tests of a target, whose name is the parameter.
class KernelTest : public KernelChecks, public testing::WithParamInterface<std::string> {
protected:
  void check(llvm::ArrayRef<KernelCase> cases) { KernelChecks::check(GetParam(), cases); }
};

/// The targets of IntegerKernelTest that this machine can run.
std::vector<std::string> integerTargets();

/// For integer matmuls, including the targets that have special kernels for them.
class IntegerKernelTest : public KernelTest {};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_KERNELTEST_H
