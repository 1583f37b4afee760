#include "backends/runtime/ranks/RankMonitor.h"

#include <deque>
#include <gmock/gmock.h>
#include <memory>
#include <semaphore>

namespace mica::rt {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

/// Heartbeats between ranks of this process. The functions of MicaMpi do not say which rank calls
/// them, so each rank has its own.
struct Network {
  static constexpr int64_t size = 3;
  std::mutex mutex;
  std::deque<std::pair<int64_t, int64_t>> to[size]; ///< sender and value
  bool isCut[size] = {};                            ///< nothing arrives from the rank
  bool isOccupied[size] = {};                       ///< the rank does not leave MPI

  int send(int64_t from, int64_t rank, int64_t value, int *sent) {
    std::lock_guard lock(mutex);
    if (!isCut[from] && !isOccupied[from])
      to[rank].emplace_back(from, value);
    *sent = !isOccupied[from];
    return 0;
  }
  int receive(int64_t at, int64_t *rank, int64_t *value) {
    std::lock_guard lock(mutex);
    *rank = isOccupied[at] ? -2 : -1;
    if (isOccupied[at] || to[at].empty())
      return 0;
    std::tie(*rank, *value) = to[at].front();
    to[at].pop_front();
    return 0;
  }
  void cut(int64_t rank) {
    std::lock_guard lock(mutex);
    isCut[rank] = true;
  }
  void occupy(int64_t rank) {
    std::lock_guard lock(mutex);
    isOccupied[rank] = true;
  }
};

Network *network;

template <int64_t rank> MicaMpi mpiOf() {
  MicaMpi mpi = {};
  mpi.sendBeat = [](int64_t to, int64_t value, int *sent) {
    return network->send(rank, to, value, sent);
  };
  mpi.receiveBeat = [](int64_t *from, int64_t *value) {
    return network->receive(rank, from, value);
  };
  return mpi;
}

class RankMonitorTest : public testing::Test {
protected:
  /// What a rank has reported.
  struct Rank {
    std::mutex mutex;
    std::string error;
    std::binary_semaphore failed{0};
    std::unique_ptr<RankMonitor> monitor;

    std::string waitForError() {
      failed.acquire();
      std::lock_guard lock(mutex);
      return error;
    }
    bool isQuiet() {
      std::lock_guard lock(mutex);
      return error.empty();
    }
  };

  RankMonitorTest() {
    network = &shared;
    for (int64_t rank = 0; rank < Network::size; ++rank)
      start(rank);
  }

  void start(int64_t rank) {
    Rank &own = ranks[rank];
    own.monitor = std::make_unique<RankMonitor>(
        mpis[rank], rank, std::vector<std::string>{"a", "b", "c"},
        [&own](const Error &error) {
          std::lock_guard lock(own.mutex);
          bool isFirst = own.error.empty();
          if (isFirst)
            own.error = error.message;
          if (isFirst)
            own.failed.release();
        },
        RankMonitor::Timing{std::chrono::milliseconds(20), 50});
    own.monitor->start();
  }

  Network shared;
  const MicaMpi mpis[Network::size] = {mpiOf<0>(), mpiOf<1>(), mpiOf<2>()};
  Rank ranks[Network::size];
};

TEST_F(RankMonitorTest, ranksThatRespondEndTogether) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  std::vector<std::thread> others;
  // Rank 0 is the last one.
  for (int64_t rank : {1, 2})
    others.emplace_back([&, rank] { ranks[rank].monitor->finish(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  ranks[0].monitor->finish();
  for (std::thread &other : others)
    other.join();
  for (Rank &rank : ranks)
    EXPECT_TRUE(rank.isQuiet()) << rank.error;
}

TEST_F(RankMonitorTest, aSilentRankIsNamed) {
  shared.cut(1);
  EXPECT_THAT(ranks[0].waitForError(), HasSubstr("rank 1 on host b has not responded for 1 s"));
  EXPECT_TRUE(ranks[2].isQuiet());
}

TEST_F(RankMonitorTest, allOthersObserveRank0) {
  shared.cut(0);
  for (int64_t rank : {1, 2})
    EXPECT_THAT(ranks[rank].waitForError(), HasSubstr("rank 0 on host a has not responded"));
}

TEST_F(RankMonitorTest, aSilentRankIsNamedWhileOthersEnd) {
  shared.cut(2);
  std::thread other([&] { ranks[1].monitor->finish(); });
  std::thread first([&] { ranks[0].monitor->finish(); });
  EXPECT_THAT(ranks[0].waitForError(), HasSubstr("rank 2 on host c has not responded"));
  other.join();
  // Nothing that rank 2 sends counts any more but the end.
  ranks[2].monitor.reset();
  int sent = 0;
  shared.isCut[2] = false;
  constexpr int64_t over = 3;
  shared.send(2, 0, over, &sent);
  first.join();
}

TEST_F(RankMonitorTest, rank0IsTold) {
  ranks[2].monitor->tellFailure([this] { return !ranks[0].isQuiet(); });
  EXPECT_EQ(ranks[0].waitForError(), "rank 2 on host c has failed; see its messages");
}

// None of them observes that another one is silent, nor is an exchange a hang by itself.
TEST_F(RankMonitorTest, ranksThatDoNotLeaveMpiEnd) {
  for (int64_t rank = 0; rank < Network::size; ++rank) {
    ranks[rank].monitor->setExchanging(true);
    shared.occupy(rank);
  }
  for (int64_t rank = 0; rank < Network::size; ++rank)
    EXPECT_THAT(ranks[rank].waitForError(),
                ContainsRegex("rank " + std::to_string(rank) +
                              " on host . hangs: it has not left a function of MPI for more than "
                              "1 s"));
}

TEST_F(RankMonitorTest, aRankThatDoesNotLeaveMpiIsSilent) {
  shared.occupy(2);
  EXPECT_THAT(ranks[0].waitForError(), HasSubstr("rank 2 on host c has not responded for 1 s"));
  EXPECT_TRUE(ranks[1].isQuiet());
}

TEST_F(RankMonitorTest, computationsNest) {
  ranks[1].monitor->setComputing(true);
  ranks[1].monitor->setComputing(true);
  ranks[1].monitor->setComputing(false);
  EXPECT_THAT(ranks[1].waitForError(), HasSubstr("rank 1 on host b hangs"));
}

TEST_F(RankMonitorTest, aRankThatOnlyWaitsHangs) {
  // No thread of this process computes. An exchange waits for other ranks, and a rank that does not
  // compute waits for requests.
  ranks[0].monitor->setComputing(true);
  ranks[0].monitor->setComputing(false);
  ranks[2].monitor->setComputing(true);
  ranks[2].monitor->setExchanging(true);
  ranks[1].monitor->setComputing(true);
  EXPECT_THAT(ranks[1].waitForError(),
              ContainsRegex("rank 1 on host b hangs: .* none of its threads has run for 1 s"));
  EXPECT_TRUE(ranks[0].isQuiet());
  EXPECT_TRUE(ranks[2].isQuiet());
}

} // namespace
} // namespace mica::rt
