#include "backends/runtime/serve/TaskThread.h"

#include <chrono>
#include <future>
#include <gmock/gmock.h>

using namespace mica::rt::serve;

TEST(TaskThread, SmallestAndOldestTasksAlternate) {
  std::promise<void> begun, ready, end;
  std::vector<size_t> order;
  TaskThread thread;
  thread.add(9, [&] {
    begun.set_value();
    ready.get_future().wait();
  });
  begun.get_future().wait(); // as the smallest of one
  for (size_t size : {7, 3, 5, 1, 6})
    thread.add(size, [&order, size] { order.push_back(size); });
  thread.add(8, [&] { end.set_value(); });
  ready.set_value();
  end.get_future().wait();
  EXPECT_THAT(order, testing::ElementsAre(7, 1, 3, 5, 6));
}

TEST(TaskThreads, SmallTasksDoNotWaitForLargeOnes) {
  std::promise<void> begun, ready, small;
  TaskThreads threads;
  threads.add(TaskThreads::maxSmallTask + 1, [&] {
    begun.set_value();
    ready.get_future().wait();
  });
  begun.get_future().wait();
  threads.add(TaskThreads::maxSmallTask, [&] { small.set_value(); });
  EXPECT_EQ(small.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  ready.set_value();
}
