// Sequences of a model with a sliding window: how far they can be rewound, and what is recomputed.
#include "tests/unit/backends/runtime/engine/SchedulerFixture.h"

#include "backends/runtime/engine/Sampler.h"

#include <gmock/gmock.h>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;

namespace {
class RewindTest : public SchedulerFixture {
protected:
  std::string manifest() const override { return fakeManifestOfWindows(); }

  void openSession(int64_t sequences, int64_t chunk) {
    auto created = Session::create(*model, sequences, chunk);
    ASSERT_TRUE(created) << created.error().message;
    session = *std::move(created);
  }

  /// Computes the text from position `from` to `end`, and compares the predictions.
  void feed(int64_t from, int64_t end, int64_t sequence = 0) {
    for (int64_t i = from; i < end; ++i)
      ASSERT_TRUE(session->add(sequence, text[i], RowRole::Prompt, i + 1 == end));
    auto logits = session->decode();
    ASSERT_TRUE(logits);
    EXPECT_EQ(*argmax(*logits), fakeNextInWindow(begin(end))) << "after " << end << " tokens";
  }

  Tokens begin(int64_t count) const { return {text.begin(), text.begin() + count}; }

  RequestResult run(const Tokens &prompt, int64_t maxTokens, int64_t lookup = 0) {
    Request next = request(prompt, maxTokens);
    next.maxReused = 1000;
    next.settings.lookup = lookup;
    Recorder recorder;
    submit(next, recorder);
    finishAll();
    return *recorder.result;
  }

  static Tokens continuation(Tokens prompt, int64_t count) {
    Tokens tokens;
    for (int64_t i = 0; i < count; ++i) {
      tokens.push_back(fakeNextInWindow(prompt));
      prompt.push_back(tokens.back());
    }
    return tokens;
  }

  Tokens text = makeText();
  std::unique_ptr<Session> session;

private:
  static Tokens makeText() {
    Tokens tokens;
    for (int32_t i = 0; i < 60; ++i)
      tokens.push_back(1 + (7 * i * i + 3 * i) % 29);
    return tokens;
  }
};

// The window plus rewindable positions, or the rows of a call, in whole blocks of four positions.
TEST_F(RewindTest, RingsHoldTheWindowAndRewindablePositions) {
  const Manifest &m = model->manifest();
  EXPECT_EQ(blocksOfCache(m, m.caches[0], 1), 3) << "5 + 6 positions";
  EXPECT_EQ(blocksOfCache(m, m.caches[0], 8), 4) << "5 + 8";
  EXPECT_EQ(blocksOfCache(m, m.caches[0], 100), 15) << "no more than the context";
  EXPECT_EQ(blocksOfCache(m, m.caches[1], 1), 15);
  EXPECT_EQ(cacheBytesPerSequence(m, 1), 12u * 4 + 60u * 12);
  EXPECT_EQ(cacheBytesPerToken(m), 4u + 12);
}

TEST_F(RewindTest, RowsAreCachedForAllChunkSizes) {
  for (int64_t chunk : {1, 3, 6, 7, 13}) {
    openSession(2, chunk);
    for (int64_t end = 0; end < 60;) {
      int64_t from = end;
      end = std::min<int64_t>(end + chunk, 60);
      feed(from, end, 1);
      feed(from, end, 0);
    }
  }
}

TEST_F(RewindTest, ReportsReusablePositions) {
  openSession(1, 4);
  for (int64_t end = 4; end <= 40; end += 4)
    feed(end - 4, end);
  // A ring of 12: of 40 positions the last 12 are cached, and a row attends to four before it.
  for (int64_t length : {40, 39, 34, 33, 32})
    EXPECT_EQ(session->rewindable(0, length), length);
  for (int64_t length : {31, 20, 1, 0})
    EXPECT_EQ(session->rewindable(0, length), 0);
  EXPECT_EQ(session->length(0), 40) << "nobody has gone back";
  EXPECT_EQ(session->rewind(0, 34), 34);
  feed(34, 36);
  EXPECT_EQ(session->rewindable(0, 32), 32) << "no more than before has been overwritten";
  EXPECT_EQ(session->rewindable(0, 31), 0);
  EXPECT_EQ(session->rewind(0, 31), 0);
  EXPECT_EQ(session->length(0), 0);
  feed(0, 4);
  EXPECT_EQ(session->rewindable(0, 1), 1) << "as of a sequence that has just begun";
}

TEST_F(RewindTest, ShortSequencesKeepAll) {
  openSession(1, 4);
  for (int64_t end = 4; end <= 12; end += 4)
    feed(end - 4, end);
  EXPECT_EQ(session->rewind(0, 1), 1);
  feed(1, 4);
  for (int64_t end = 8; end <= 16; end += 4)
    feed(end - 4, end);
  EXPECT_EQ(session->rewind(0, 9), 9);
  feed(9, 10);
  EXPECT_EQ(session->rewind(0, 1), 0);
}

TEST_F(RewindTest, SequencesAreKeptApart) {
  openSession(2, 4);
  for (int64_t end = 4; end <= 20; end += 4)
    feed(end - 4, end, 1);
  feed(0, 3, 0);
  EXPECT_EQ(session->rewindable(0, 1), 1);
  EXPECT_EQ(session->rewindable(1, 1), 0);
}

TEST_F(RewindTest, QueuedRowsThatAreDiscardedHaveOverwrittenNothing) {
  openSession(1, 4);
  feed(0, 4);
  for (int64_t end = 8; end <= 12; end += 4)
    feed(end - 4, end);
  for (int64_t i = 12; i < 16; ++i)
    ASSERT_TRUE(session->add(0, text[i], RowRole::Prompt, false));
  session->discardQueued();
  EXPECT_EQ(session->length(0), 12);
  EXPECT_EQ(session->rewindable(0, 1), 1);
}

TEST_F(RewindTest, DraftsAreDiscarded) {
  open({.slots = 1, .promptRows = 4});
  Tokens prompt = {3, 4, 3, 4, 3, 4};
  RequestResult result = run(prompt, 30, /*lookup=*/5);
  EXPECT_EQ(result.tokens, continuation(prompt, 30));
  EXPECT_GT(result.drafted, result.accepted);
}

TEST_F(RewindTest, AnEditedTurnIsReusedOrRecomputed) {
  open({.slots = 1, .promptRows = 4});
  EXPECT_EQ(run(begin(30), 2).tokens, continuation(begin(30), 2));
  Tokens edited = begin(27);
  edited.push_back(9);
  RequestResult result = run(edited, 2);
  EXPECT_EQ(result.reusedTokens, 27);
  EXPECT_EQ(result.tokens, continuation(edited, 2));
  edited = begin(12);
  edited.push_back(9);
  fakeCalls.clear();
  result = run(edited, 2);
  EXPECT_EQ(result.reusedTokens, 0);
  EXPECT_EQ(result.tokens, continuation(edited, 2));
  EXPECT_EQ(fakeCalls[0].rows[0], (Row{edited[0], 0, 0}));
}

// A slot that would have to start over is equivalent to an empty one.
TEST_F(RewindTest, PicksTheSlotThatKeepsMost) {
  open({.slots = 2, .promptRows = 4});
  Recorder first, second;
  submit(request(begin(30), 1), first);
  submit(request(begin(5), 1), second);
  finishAll();
  Tokens prompt = begin(12);
  fakeCalls.clear();
  RequestResult result = run(prompt, 1);
  EXPECT_EQ(result.reusedTokens, 5) << "of the second, though the first has had all twelve";
  EXPECT_EQ(result.tokens, continuation(prompt, 1));
}
} // namespace
