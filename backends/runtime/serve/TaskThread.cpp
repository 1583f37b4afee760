#include "backends/runtime/serve/TaskThread.h"

#include <algorithm>
#include <utility>

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

void TaskThread::add(size_t size, std::function<void()> task) {
  {
    std::lock_guard lock(mutex);
    tasks.push_back({size, std::move(task)});
  }
  changed.notify_one();
}

std::function<void()> TaskThread::takeNext() {
  auto next = takesOldest ? tasks.begin() : std::ranges::min_element(tasks, {}, &Task::size);
  takesOldest = !takesOldest;
  std::function<void()> function = std::move(next->function);
  tasks.erase(next);
  return function;
}

void TaskThread::run() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || !tasks.empty(); });
      if (stopping)
        return;
      task = takeNext();
    }
    task();
  }
}

} // namespace mica::rt::serve
