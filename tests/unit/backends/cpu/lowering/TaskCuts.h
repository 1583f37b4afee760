//===- TaskCuts.h - the runtime that a test's kernels call ------*- C++ -*-===//
//
// Tasks are split as set by the current cut; matmuls use oneDNN on one thread.
//
//===----------------------------------------------------------------------===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_TASKCUTS_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_TASKCUTS_H

#include "backends/runtime/abi/RuntimeTable.h"

#include <functional>

namespace mica::test {

/// The work of the tasks [begin, end) of one launch.
using TaskBody = std::function<void(int64_t begin, int64_t end)>;
/// Runs all of `tasks` tasks in parts.
using TaskCut = std::function<void(const TaskBody &body, int64_t tasks)>;

/// All tasks at once.
TaskCut inOnePart();
/// `parts` parts of about the same size, the last one first.
TaskCut inParts(int64_t parts);
/// One by one, the last one first.
TaskCut oneByOne();
/// On a pool with `threads` threads, which is never destroyed.
TaskCut onPool(unsigned threads);

/// Sets how launches are split from now on; initially in one part.
void setTaskCut(TaskCut cut);

/// The runtime table that splits tasks as set by setTaskCut, without probes.
extern const rt::RuntimeTable cuttingRuntime;

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_LOWERING_TASKCUTS_H
