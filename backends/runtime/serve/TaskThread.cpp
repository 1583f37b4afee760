#include "backends/runtime/serve/TaskThread.h"

namespace mica::rt::serve {

TaskThread::TaskThread() : thread([this] { run(); }) {}

TaskThread::~TaskThread() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_one();
  thread.join();
}

void TaskThread::add(std::function<void()> task) {
  {
    std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
  }
  changed.notify_one();
}

void TaskThread::run() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || !tasks.empty(); });
      if (stopping)
        return;
      task = std::move(tasks.front());
      tasks.pop_front();
    }
    task();
  }
}

} // namespace mica::rt::serve
