#include "backends/runtime/engine/FairQueue.h"

#include <gmock/gmock.h>
#include <memory>
#include <string>
#include <vector>

using namespace mica::rt;
using testing::ElementsAre;

namespace {
/// Items are named by their group and number: "a1".
class FairQueueTest : public testing::Test {
protected:
  void add(const std::string &item) { queue.add(item[0], std::make_unique<std::string>(item)); }
  void addTo(const std::string &item) { queue.addTo(item[0], std::make_unique<std::string>(item)); }
  std::string pop() {
    std::string next = *queue.front();
    EXPECT_EQ(*queue.pop(), next);
    return next;
  }
  std::vector<std::string> rest() {
    std::vector<std::string> items;
    for (size_t left = queue.size(); left > 0; --left) {
      EXPECT_EQ(queue.size(), left);
      items.push_back(pop());
    }
    EXPECT_TRUE(queue.empty());
    return items;
  }
  std::vector<std::string> remove(const std::string &unwanted) {
    std::vector<std::string> removed;
    queue.removeIf([&](const auto &item) { return unwanted.find(*item) != unwanted.npos; },
                   [&](const auto &item) { removed.push_back(*item); });
    return removed;
  }

  FairQueue<char, std::unique_ptr<std::string>> queue;
};

TEST_F(FairQueueTest, GroupsOfOneAreServedInOrder) {
  for (const char *item : {"a", "b", "c"})
    add(item);
  EXPECT_EQ(pop(), "a");
  add("d");
  EXPECT_THAT(rest(), ElementsAre("b", "c", "d"));
}

TEST_F(FairQueueTest, GroupsTakeTurns) {
  add("a1");
  addTo("a2");
  addTo("a3");
  add("b1");
  add("c1");
  addTo("c2");
  addTo("a4");
  EXPECT_THAT(rest(), ElementsAre("a1", "b1", "c1", "a2", "c2", "a3", "a4"));
}

TEST_F(FairQueueTest, ANewGroupIsServedBeforeTheLastOne) {
  add("a1");
  for (const char *item : {"a2", "a3", "a4"})
    addTo(item);
  EXPECT_EQ(pop(), "a1");
  EXPECT_EQ(pop(), "a2");
  EXPECT_EQ(*queue.front(), "a3");
  add("b1");
  EXPECT_EQ(pop(), "b1");
  // One that arrives later does not overtake the group that waits.
  add("c1");
  EXPECT_THAT(rest(), ElementsAre("a3", "c1", "a4"));
}

TEST_F(FairQueueTest, AGroupReturns) {
  add("a1");
  EXPECT_EQ(pop(), "a1");
  add("b1");
  addTo("a2");
  addTo("b2");
  EXPECT_THAT(rest(), ElementsAre("b1", "a2", "b2"));
}

TEST_F(FairQueueTest, Removal) {
  add("a1");
  addTo("a2");
  addTo("a3");
  add("b1");
  addTo("b2");
  add("c1");
  EXPECT_EQ(pop(), "a1");
  EXPECT_THAT(remove("a2 a3 b1"), ElementsAre("a2", "a3", "b1"));
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_THAT(rest(), ElementsAre("b2", "c1"));
  EXPECT_THAT(remove("a"), ElementsAre());
  add("d1");
  EXPECT_THAT(remove("d1"), ElementsAre("d1"));
  EXPECT_TRUE(queue.empty());
}
} // namespace
