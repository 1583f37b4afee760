#include "backends/runtime/engine/Session.h"
#include "backends/runtime/engine/Sampler.h"
#include "tests/unit/backends/runtime/FakeModelFixture.h"

#include <gmock/gmock.h>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;

namespace {
/// Sequences of a model whose rows depend on the sequence length: it returns NaN if it reads rows
/// of both sides of a threshold.
class SessionTest : public FakeModelFixture {
protected:
  std::string manifest() const override { return fakeManifestOfLengths(); }

  void open(int64_t sequences, int64_t chunk) {
    auto created = Session::create(*model, sequences, chunk);
    ASSERT_TRUE(created) << created.error().message;
    session = *std::move(created);
  }
  void push(int64_t sequence, const Tokens &tokens, RowRole role = RowRole::Prompt) {
    for (size_t i = 0; i < tokens.size(); ++i)
      ASSERT_TRUE(session->add(sequence, tokens[i], role, i + 1 == tokens.size()));
  }
  /// The prediction of the model after the last queued row; -1: NaN.
  int32_t next() {
    auto logits = session->decode();
    return logits ? top(*logits) : -1;
  }
  static int32_t top(std::span<const float> logits) {
    Result<int32_t> token = argmax(logits);
    return token ? *token : -1;
  }

  /// Ten tokens: two more than the threshold.
  const Tokens text = {5, 3, 9, 1, 4, 4, 7, 2, 6, 8};
  Tokens begin(size_t count) const { return {text.begin(), text.begin() + count}; }
  std::unique_ptr<Session> session;
};

TEST_F(SessionTest, RecomputesInChunksWhereASequenceCrossesAThreshold) {
  open(1, 3);
  push(0, begin(8));
  EXPECT_EQ(next(), fakeNext(begin(8)));
  EXPECT_EQ(session->recomputedTokens(), 0);
  fakeCalls.clear();
  push(0, {text[8]});
  EXPECT_EQ(next(), fakeNext(begin(9)));
  EXPECT_EQ(session->recomputedTokens(), 8);
  ASSERT_EQ(fakeCalls.size(), 4u);
  EXPECT_THAT(
      fakeCalls[1].rows,
      testing::ElementsAre(FakeCall::Row{1, 0, 3}, FakeCall::Row{4, 0, 4}, FakeCall::Row{4, 0, 5}));
  push(0, {text[9]});
  EXPECT_EQ(next(), fakeNext(text));
  EXPECT_EQ(session->recomputedTokens(), 8) << "once";
}

TEST_F(SessionTest, RecomputesAfterRewindingBelowTheThreshold) {
  open(1, 16);
  push(0, text);
  EXPECT_EQ(next(), fakeNext(text));
  EXPECT_EQ(session->recomputedTokens(), 0) << "all rows were queued together";
  session->rewind(0, 4);
  push(0, {text[4]});
  EXPECT_EQ(next(), fakeNext(begin(5)));
  EXPECT_EQ(session->recomputedTokens(), 4);
}

TEST_F(SessionTest, AnExpectedLengthIsNotRecomputed) {
  open(1, 16);
  session->setTotalLength(0, 10);
  push(0, begin(4));
  EXPECT_EQ(next(), fakeNext(begin(4)));
  push(0, {text.begin() + 4, text.end()});
  EXPECT_EQ(next(), fakeNext(text));
  EXPECT_EQ(session->recomputedTokens(), 0);
}

TEST_F(SessionTest, CountsPositionsUntilTheThreshold) {
  open(1, 16);
  EXPECT_EQ(session->positionsUntilThreshold(0), fakeThreshold);
  push(0, begin(3));
  EXPECT_EQ(session->positionsUntilThreshold(0), fakeThreshold - 3);
  session->setTotalLength(0, 10);
  EXPECT_EQ(session->positionsUntilThreshold(0), fakeMaxSeq - 3);
}

TEST_F(SessionTest, EachSequenceHasItsOwnRegime) {
  open(2, 16);
  push(0, begin(8));
  EXPECT_EQ(next(), fakeNext(begin(8)));
  push(0, {text[8]});
  push(1, begin(2));
  auto logits = session->decode();
  ASSERT_TRUE(logits);
  EXPECT_EQ(top(logits->first(fakeVocab)), fakeNext(begin(9)));
  EXPECT_EQ(top(logits->last(fakeVocab)), fakeNext(begin(2)));
  EXPECT_EQ(session->recomputedTokens(), 8);
}

TEST_F(SessionTest, StoppingBeforeTheFirstCallDropsQueuedRowsOnly) {
  open(2, 3);
  push(0, begin(8));
  EXPECT_EQ(next(), fakeNext(begin(8)));
  push(1, {7});
  push(0, {text[8], text[9]});
  auto prepared = session->prepare([](int64_t sequence) {
    EXPECT_EQ(sequence, 0);
    return false;
  });
  ASSERT_TRUE(prepared);
  EXPECT_FALSE(*prepared);
  EXPECT_EQ(session->queued(), 0);
  EXPECT_EQ(session->length(0), 8);
  EXPECT_EQ(session->length(1), 0);
  EXPECT_EQ(session->recomputedTokens(), 0);
  // The caches are as they were.
  session->rewind(0, 7);
  push(0, {text[7]});
  EXPECT_EQ(next(), fakeNext(begin(8)));
  EXPECT_EQ(session->recomputedTokens(), 0);
}

TEST_F(SessionTest, StoppingBetweenCallsDropsTheRemainingRows) {
  open(1, 3);
  push(0, begin(8));
  EXPECT_EQ(next(), fakeNext(begin(8)));
  push(0, {text[8]});
  int asked = 0;
  auto prepared = session->prepare([&](int64_t) { return ++asked < 3; });
  ASSERT_TRUE(prepared);
  EXPECT_FALSE(*prepared);
  EXPECT_EQ(session->length(0), 6) << "two calls of three rows";
  EXPECT_EQ(session->recomputedTokens(), 6);
  // From there on to the same end, whether that is a long text ...
  push(0, {text[6], text[7], text[8]});
  EXPECT_EQ(next(), fakeNext(begin(9)));
  EXPECT_EQ(session->recomputedTokens(), 6);
  // ... or a short one.
  session->rewind(0, 6);
  push(0, {text[6]});
  EXPECT_EQ(next(), fakeNext(begin(7)));
}

TEST_F(SessionTest, PreparedRowsAreNotRecomputedByTheRun) {
  open(1, 16);
  push(0, begin(8));
  EXPECT_EQ(next(), fakeNext(begin(8)));
  push(0, {text[8]});
  auto prepared = session->prepare({});
  ASSERT_TRUE(prepared);
  EXPECT_TRUE(*prepared);
  EXPECT_EQ(session->recomputedTokens(), 8);
  EXPECT_EQ(next(), fakeNext(begin(9)));
  EXPECT_EQ(session->recomputedTokens(), 8);
}
} // namespace
