//===- TaskCuts.cpp - the runtime that a test's kernels call --------------===//

#include "tests/unit/backends/cpu/lowering/TaskCuts.h"

#include "backends/cpu/device/Matmul.h"

#include <cstdio>
#include <cstdlib>
#include <map>

using namespace mica;

namespace mica::test {

TaskCut inOnePart() {
  return [](const TaskBody &body, int64_t tasks) { body(0, tasks); };
}

TaskCut inParts(int64_t parts) {
  return [parts](const TaskBody &body, int64_t tasks) {
    for (int64_t part = parts - 1; part >= 0; --part)
      if (int64_t begin = tasks * part / parts, end = tasks * (part + 1) / parts; begin != end)
        body(begin, end);
  };
}

TaskCut oneByOne() {
  return [](const TaskBody &body, int64_t tasks) {
    for (int64_t task = tasks - 1; task >= 0; --task)
      body(task, task + 1);
  };
}

TaskCut onPool(unsigned threads) {
  // Never destroyed: at exit, a thread of the pool may still be going to sleep.
  static auto *pools = new std::map<unsigned, rt::Pool>;
  rt::Pool &pool = pools->try_emplace(threads, threads).first->second;
  return [&pool](const TaskBody &body, int64_t tasks) {
    pool.parallelFor([](void *context, int64_t begin,
                        int64_t end) { (*static_cast<const TaskBody *>(context))(begin, end); },
                     const_cast<TaskBody *>(&body), tasks);
  };
}

static TaskCut &taskCut() {
  static TaskCut cut = inOnePart();
  return cut;
}

void setTaskCut(TaskCut cut) { taskCut() = std::move(cut); }

static void parallelFor(void *, void (*body)(void *, int64_t, int64_t), void *context,
                        int64_t tasks) {
  if (tasks > 0)
    taskCut()([=](int64_t begin, int64_t end) { body(context, begin, end); }, tasks);
}

static void matmul(void *, const void *a, const void *w, void *c, int64_t m, int64_t n, int64_t k,
                   int64_t lda, int64_t ldc, int32_t format, int32_t accumulate) {
  static auto *pool = new rt::Pool(1);
  static auto *matmul = new rt::Matmul(*pool);
  rt::MatmulShape shape{m, n, k, lda, ldc, static_cast<rt::MatmulFormat>(format), accumulate != 0};
  if (rt::Status done = matmul->run(shape, a, w, c); !done) {
    std::fprintf(stderr, "%s\n", done.error().message.c_str());
    std::abort();
  }
}

const rt::RuntimeTable cuttingRuntime = {.size = sizeof(rt::RuntimeTable),
                                         .runtime = nullptr,
                                         .parallelFor = parallelFor,
                                         .matmul = matmul,
                                         .probe = nullptr};

} // namespace mica::test
