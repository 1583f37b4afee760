#include "backends/runtime/serve/MemoryBudget.h"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

using namespace mica::rt::serve;

TEST(MemoryBudget, ReservationsAreAllOrNothing) {
  MemoryBudget budget(100);
  Reservation first(budget);
  EXPECT_TRUE(first.resize(60));
  {
    Reservation second(budget);
    EXPECT_FALSE(second.resize(41));
    EXPECT_EQ(budget.used(), 60u);
    EXPECT_TRUE(second.resize(40));
    EXPECT_FALSE(second.resize(41));
    EXPECT_TRUE(second.canHold(100));
    EXPECT_FALSE(second.canHold(101));
    EXPECT_EQ(budget.used(), 100u);
    EXPECT_TRUE(first.resize(10));
    EXPECT_TRUE(second.resize(90));
  }
  EXPECT_EQ(budget.used(), 10u);
  EXPECT_TRUE(first.resize(0));
  EXPECT_EQ(budget.used(), 0u);
}

TEST(MemoryBudget, ThreadsNeverHaveMoreThanTheMaximum) {
  MemoryBudget budget(10);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < 20000; ++i) {
        Reservation own(budget);
        (void)own.resize(i % 5);
        (void)own.resize(i % 7);
        EXPECT_LE(budget.used(), 10u);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(budget.used(), 0u);
}
