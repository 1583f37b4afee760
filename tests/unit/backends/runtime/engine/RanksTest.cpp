// Rank 0 of a program for two ranks, with little memory.
#include "backends/runtime/engine/Session.h"
#include "tests/unit/backends/runtime/FakeModelFixture.h"

#include <cstdlib>
#include <new>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;

namespace {
constexpr int64_t unlimited = -1;
/// How many allocations of this thread succeed.
thread_local int64_t allocations = unlimited;
} // namespace

void *operator new(size_t size) {
  if (allocations == 0)
    throw std::bad_alloc();
  if (allocations > 0)
    --allocations;
  if (void *memory = std::malloc(size ? size : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace {
/// Counts what the other rank is told to compute, and what this one computes, for which it has
/// enough memory.
class TwoRanks final : public Communicator {
public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 2; }
  Status allGather(const void *, uint64_t, void *) override { return {}; }
  Status broadcast(void *data, uint64_t) override {
    // The beginning of a message.
    announced += *static_cast<RankMessage::Kind *>(data) == RankMessage::Kind::Call;
    return {};
  }
  void setComputing(bool is) override {
    computed += is;
    allocations = unlimited;
  }
  [[noreturn]] void fail(const Error &error) override { std::abort(); }

  int announced = 0, computed = 0;
};

class RanksTest : public FakeModelFixture {
protected:
  void SetUp() override {
    auto loaded = load(forTwoRanks(fakeManifest()), CpuDevice(), 1, &ranks);
    ASSERT_TRUE(loaded) << loaded.error().message;
    model = *std::move(loaded);
  }
  void TearDown() override { model.reset(); }

  TwoRanks ranks;
};

// Otherwise the other rank would wait in the exchanges of a call for the next message, and take it
// for values.
TEST_F(RanksTest, ACallIsAnnouncedIfItIsMade) {
  bool isDone = false;
  int64_t needed = 0;
  for (; !isDone; ++needed) {
    auto session = Session::create(*model, 1, 16);
    ASSERT_TRUE(session) << session.error().message;
    for (int32_t token : {5, 3, 9})
      ASSERT_TRUE((*session)->add(0, token, RowRole::Prompt, true));
    ranks.announced = ranks.computed = 0;
    allocations = needed;
    try {
      isDone = bool((*session)->decode());
    } catch (const std::bad_alloc &) {
    }
    allocations = unlimited;
    EXPECT_EQ(ranks.announced, ranks.computed) << needed << " allocations";
    EXPECT_EQ(ranks.computed, isDone);
  }
  EXPECT_GT(needed, 10) << "allocations of a call";
}
} // namespace
