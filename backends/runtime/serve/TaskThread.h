// A thread for work that would delay the server's: reading large requests.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_TASKTHREAD_H
#define MICA_BACKENDS_RUNTIME_SERVE_TASKTHREAD_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace mica::rt::serve {

class TaskThread {
public:
  TaskThread();
  /// Finishes the task in progress and drops waiting ones.
  ~TaskThread();

  /// Queues `task`. A task must not throw. May be called from any thread.
  void add(std::function<void()> task);

private:
  void run();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool stopping = false;
  std::thread thread;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_TASKTHREAD_H
