//===- KernelTest.h - kernels against the interpreter -----------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_KERNELTEST_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_KERNELTEST_H

#include "tests/unit/backends/cpu/lowering/KernelHarness.h"
#include "tests/unit/backends/cpu/lowering/Tolerance.h"
#include "tests/unit/backends/cpu/lowering/Words.h"

#include "gtest/gtest.h"

namespace mica::test {

/// One function of a table.
struct KernelCase {
  std::string name; ///< of the function
  std::string text; ///< the function and its weights; see Arguments.h for their attributes
  Tolerance tolerance;
  /// Whether every row is computed by itself, so that no bit depends on how rows are cut.
  bool exactRows = true;
  /// Whether all its results have the same bits, from two rows on: oneDNN adds a single row's
  /// products in another order, but is never asked to.
  bool equalResults = false;
  /// Whether it is run with up to some hundred rows, instead of up to `maxRows`.
  bool manyRows = false;
  int64_t maxRows = 33;
};

/// A case of a table: `{name}` in the text stands for the case's name, whose own keys are filled
/// first.
KernelCase makeCase(std::string name, std::string text, const Words &words,
                    Tolerance tolerance = {});

/// The body of every test here.
class KernelChecks : public testing::Test {
protected:
  /// Compiles all functions of a table in one module, and checks each of them: against the
  /// interpreter at several numbers of rows, for cuts of the rows into two steps, and for cuts of
  /// the tasks of every launch.
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

/// The parameter is the target's name.
class KernelTest : public KernelChecks, public testing::WithParamInterface<std::string> {
protected:
  void check(llvm::ArrayRef<KernelCase> cases) { KernelChecks::check(GetParam(), cases); }
};

/// The targets of IntegerKernelTest that this machine can run.
std::vector<std::string> integerTargets();

/// Of products of integers, on the targets that have kernels of their own for them as well.
class IntegerKernelTest : public KernelTest {};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_KERNELTEST_H
