// Threads for work that would delay the server's: reading large requests.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_TASKTHREAD_H
#define MICA_BACKENDS_RUNTIME_SERVE_TASKTHREAD_H

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace mica::rt::serve {

/// Of the waiting tasks, the smallest one and the oldest one are next alternately: a small task
/// does not wait for many large ones, which do not wait forever.
class TaskThread {
public:
  TaskThread();
  /// Finishes the task in progress and drops waiting ones.
  ~TaskThread();

  /// Queues `task`, which takes about as much time as others of that `size`. A task must not throw.
  /// May be called from any thread.
  void add(size_t size, std::function<void()> task);

private:
  struct Task {
    size_t size;
    std::function<void()> function;
  };
  void run();
  std::function<void()> takeNext();

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Task> tasks; ///< in order of arrival
  bool takesOldest = false;
  bool stopping = false;
  std::thread thread;
};

/// A thread for tasks up to a size and one for larger ones, which may take seconds: a task does not
/// wait for much larger ones.
class TaskThreads {
public:
  static constexpr size_t maxSmallTask = 256 << 10;

  /// See TaskThread::add.
  void add(size_t size, std::function<void()> task) {
    (size <= maxSmallTask ? small : large).add(size, std::move(task));
  }

private:
  TaskThread small, large;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_TASKTHREAD_H
