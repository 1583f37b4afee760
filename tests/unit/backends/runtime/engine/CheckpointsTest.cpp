// Sequences of a model with recurrent and rolling states: after a rewind, logits are those of a
// sequence that was never rewound, and what is recomputed is bounded.
#include "tests/unit/backends/runtime/engine/SchedulerFixture.h"

#include <cstring>
#include <gmock/gmock.h>
#include <random>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;
using testing::HasSubstr;

namespace {
class CheckpointsTest : public SchedulerFixture {
protected:
  std::string manifest() const override { return fakeManifestOfStates(); }

  uint64_t each() const { return checkpointBytes(model->manifest()); }

  std::unique_ptr<Session> openSession(int64_t sequences, int64_t chunk, uint64_t count) const {
    auto created = Session::create(*model, sequences, chunk, count * each());
    EXPECT_TRUE(created) << created.error().message;
    return *std::move(created);
  }

  /// Computes the positions of the text after those that the session has; the last row's logits.
  static std::vector<float> feed(Session &session, const Tokens &text, int64_t chunk,
                                 int64_t sequence = 0, RowRole role = RowRole::Prompt) {
    std::vector<float> last;
    for (int64_t end = std::ssize(text); session.length(sequence) < end;) {
      for (int64_t row = 0; row < chunk && session.length(sequence) < end; ++row) {
        int64_t position = session.length(sequence);
        EXPECT_TRUE(
            session.add(sequence, text[static_cast<size_t>(position)], role, position + 1 == end));
      }
      auto logits = session.decode();
      EXPECT_TRUE(logits);
      last.assign(logits->begin(), logits->end());
    }
    return last;
  }

  std::vector<float> fresh(const Tokens &text) const {
    return feed(*openSession(1, 512, 0), text, 512);
  }

  Tokens randomText(int64_t length) {
    Tokens tokens;
    for (int64_t i = 0; i < length; ++i)
      tokens.push_back(1 + static_cast<int32_t>(random() % 30));
    return tokens;
  }

  RequestResult run(const Tokens &prompt, int64_t maxTokens, int64_t lookup = 0) {
    Request next = request(prompt, maxTokens);
    next.maxReused = std::ssize(prompt);
    next.settings.lookup = lookup;
    Recorder recorder;
    submit(next, recorder);
    finishAll();
    return *recorder.result;
  }

  std::mt19937 random{7};
};

TEST_F(CheckpointsTest, SizeOfACheckpoint) {
  // Two layers of two heads with a matrix of six, and three rows of the convolution.
  EXPECT_EQ(each(), (2u * 2 * 6 + 3) * 4);
  EXPECT_EQ(stateBytesPerSequence(model->manifest()), (2u * 2 * (12 + 64 * 6) + 64) * 4);
}

TEST_F(CheckpointsTest, BudgetOfASingleOneAtLeast) {
  const Manifest &m = model->manifest();
  EXPECT_EQ(*checkpointBudget(m, each(), 0), each());
  EXPECT_EQ(*checkpointBudget(m, 0, 8000), 0u);
  EXPECT_EQ(*checkpointBudget(m, std::nullopt, 8000), 1000u);
  EXPECT_THAT(
      checkpointBudget(m, each() - 1, 8000).error().message,
      HasSubstr("--checkpoint-bytes 107 is too small for a single checkpoint of 108 bytes"));
}

TEST_F(CheckpointsTest, WarnsOfABudgetWithoutEffect) {
  auto warning = [](const std::string &text, std::optional<uint64_t> asked) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(*checkpointBudget(*parseManifest(text), asked, 8000), 0u);
    return testing::internal::GetCapturedStderr();
  };
  for (const std::string &without : {fakeManifest(), fakeManifestOfWindows()}) {
    EXPECT_THAT(warning(without, 1), HasSubstr("the model has no states of fixed size; "
                                               "--checkpoint-bytes has no effect"));
    EXPECT_EQ(warning(without, 0), "");
    EXPECT_EQ(warning(without, std::nullopt), "");
  }
  EXPECT_THAT(warning(forTwoRanks(fakeManifestOfStates()), each()),
              HasSubstr("programs for several ranks take no checkpoints; --checkpoint-bytes has no "
                        "effect"));
}

TEST_F(CheckpointsTest, WithoutThemARewindKeepsTheRingsOnly) {
  auto session = openSession(1, 64, 0);
  Tokens text = randomText(160);
  feed(*session, text, 64);
  EXPECT_FALSE(session->keepsCheckpoints());
  for (int64_t length : {160, 129, 128, 99})
    EXPECT_EQ(session->rewindable(0, length), length);
  EXPECT_EQ(session->rewindable(0, 98), 0) << "the convolution needs the row at 95";
  text.push_back(5);
  feed(*session, text, 64);
  EXPECT_EQ(session->rewindable(0, 128), 0) << "the matrix at 96 has been overwritten";
  EXPECT_EQ(session->rewindable(0, 129), 129);
}

TEST_F(CheckpointsTest, RandomRewindsAreBitIdentical) {
  for (int64_t chunk : {1, 7, 31, 32, 33, 64, 200})
    for (uint64_t count : {0, 1, 3, 50}) {
      auto session = openSession(2, chunk, count);
      std::vector<Tokens> texts(2);
      for (int step = 0; step < 25; ++step) {
        size_t s = random() % 2;
        Tokens &text = texts[s];
        auto length = static_cast<int64_t>(random() % (text.size() + 1));
        // Mostly near the end, as drafts and edits are.
        if (random() % 2)
          length = std::max<int64_t>(0, std::ssize(text) - static_cast<int64_t>(random() % 70));
        auto sequence = static_cast<int64_t>(s);
        int64_t expected = session->rewindable(sequence, length),
                kept = session->rewind(sequence, length);
        EXPECT_EQ(kept, expected);
        EXPECT_LE(kept, length);
        EXPECT_EQ(session->rewindable(sequence, kept), kept);
        text.resize(static_cast<size_t>(length));
        Tokens more = randomText(1 + static_cast<int64_t>(random() % 300));
        text.insert(text.end(), more.begin(), more.end());
        if (text.size() > 1900)
          text.resize(1900);
        ASSERT_EQ(feed(*session, text, chunk, sequence), fresh(text))
            << "chunks of " << chunk << ", " << count << " checkpoints, step " << step << ", "
            << kept << " of " << length << " kept";
        EXPECT_LE(session->checkpointBytes(), count * each());
      }
    }
}

TEST_F(CheckpointsTest, ContinuesAtTheNearestOne) {
  auto session = openSession(1, 512, 100);
  feed(*session, randomText(1800), 512);
  // One after each call: before 512, 1024, 1536 and 1800.
  EXPECT_EQ(session->checkpointBytes(), 4 * each());
  EXPECT_EQ(session->rewindable(0, 1700), 1504);
  EXPECT_EQ(session->rewindable(0, 1503), 992);
  EXPECT_EQ(session->rewindable(0, 992), 992);
  EXPECT_EQ(session->rewindable(0, 479), 0);
  EXPECT_EQ(session->rewind(0, 1000), 992);
  EXPECT_EQ(session->checkpointBytes(), 2 * each()) << "those of discarded positions are gone";
  EXPECT_EQ(session->rewindable(0, 992), 992);
  EXPECT_EQ(session->rewindable(0, 991), 480);
  session->rewind(0, 0);
  EXPECT_EQ(session->checkpointBytes(), 0u);
}

TEST_F(CheckpointsTest, SparserTowardTheBeginning) {
  auto session = openSession(1, 16, 5);
  feed(*session, randomText(1950), 16);
  EXPECT_EQ(session->checkpointBytes(), 5 * each());
  // The recomputed part is at most a constant multiple of the discarded one.
  for (int64_t length = 1950; length > 300; length -= 10) {
    int64_t kept = session->rewindable(0, length);
    EXPECT_LE(length - kept, 320 + (1950 - length)) << length;
    EXPECT_LE(kept, length);
  }
}

TEST_F(CheckpointsTest, TheLeastRecentlyUsedSequenceYields) {
  auto session = openSession(3, 300, 2);
  std::vector<Tokens> texts = {randomText(400), randomText(400), randomText(400)};
  auto feedTo = [&](int64_t sequence, int64_t end) {
    const Tokens &text = texts[static_cast<size_t>(sequence)];
    feed(*session, {text.begin(), text.begin() + end}, 300, sequence);
  };
  for (int64_t sequence : {0, 1})
    feedTo(sequence, 400);
  EXPECT_EQ(session->rewind(0, 300), 288);
  feedTo(0, 400);
  feedTo(2, 400);
  EXPECT_EQ(session->checkpointBytes(), 2 * each());
  EXPECT_EQ(session->rewindable(0, 300), 288);
  EXPECT_EQ(session->rewindable(1, 300), 0);
  EXPECT_EQ(session->rewindable(2, 300), 288);
}

TEST_F(CheckpointsTest, AnEditOfTheLastTurnComputesLittle) {
  open({.slots = 2, .promptRows = 512, .checkpointBytes = 1 << 20});
  Tokens text = randomText(1850);
  run(text, 1);
  for (int64_t turn : {20, 100, 300, 448}) {
    Tokens edited(text.begin(), text.end() - turn);
    Tokens more = randomText(turn);
    edited.insert(edited.end(), more.begin(), more.end());
    edited[edited.size() - static_cast<size_t>(turn)] =
        31 - text[text.size() - static_cast<size_t>(turn)] % 30;
    RequestResult result = run(edited, 3);
    EXPECT_LE(std::ssize(edited) - result.reusedTokens, 512)
        << "edited " << turn << " before the end";
    EXPECT_GT(result.reusedTokens, 0);
    open({.slots = 1, .promptRows = 100});
    EXPECT_EQ(result.tokens, run(edited, 3).tokens);
    open({.slots = 2, .promptRows = 512, .checkpointBytes = 1 << 20});
    run(text, 1);
  }
}

// The template drops what the model has said, or a user's message is changed, in a conversation of
// growing prompts.
TEST_F(CheckpointsTest, TurnsBeginAtCheckpoints) {
  for (bool drops : {false, true}) {
    open({.slots = 1, .promptRows = 128, .checkpointBytes = 1 << 20});
    Tokens text = randomText(200);
    for (int turn = 0; turn < 5; ++turn) {
      RequestResult made = run(text, 60, /*lookup=*/turn % 2 ? 4 : 0);
      int64_t end = std::ssize(text);
      if (!drops)
        text.insert(text.end(), made.tokens.begin(), made.tokens.end());
      Tokens message = randomText(200);
      text.insert(text.end(), message.begin(), message.end());
      RequestResult next = run(text, 1);
      EXPECT_GE(next.reusedTokens, end - 32) << "turn " << turn;
      EXPECT_GE(next.reusedTokens, drops ? 0 : end + 59) << "turn " << turn;
      std::fill(text.end() - 199, text.end(), 3 + turn);
      next = run(text, 1);
      EXPECT_GE(next.reusedTokens, std::ssize(text) - 200 - 33) << "turn " << turn;
      open({.slots = 1, .promptRows = 100});
      Tokens expected = run(text, 5).tokens;
      open({.slots = 1, .promptRows = 128, .checkpointBytes = 1 << 20});
      run(text, 1);
      EXPECT_EQ(run(text, 5).tokens, expected);
    }
  }
}

// Prompts that share a prefix continue at the place where they diverge.
TEST_F(CheckpointsTest, SharedPrefixes) {
  open({.slots = 1, .promptRows = 512, .checkpointBytes = 1 << 20});
  Tokens shared = randomText(300);
  for (int i = 0; i < 4; ++i) {
    Tokens prompt = shared, own = randomText(150);
    prompt.insert(prompt.end(), own.begin(), own.end());
    prompt[300] = 1 + i;
    RequestResult result = run(prompt, 1);
    if (i > 1)
      EXPECT_EQ(result.reusedTokens, 288) << i;
  }
}

/// A model whose arithmetic depends on roles.
class CheckpointsByRoleTest : public CheckpointsTest {
  std::string manifest() const override { return dependingOnRole(fakeManifestOfStates()); }
};

// An answer that is recomputed as part of a prompt continues at the checkpoint before it.
TEST_F(CheckpointsByRoleTest, AnswersAreRecomputed) {
  open({.slots = 1, .promptRows = 128, .checkpointBytes = 1 << 20});
  Tokens prompt = randomText(700);
  Recorder recorder;
  submit(request(prompt, 200), recorder);
  finishAll();
  for (int i = 0; i < 100 && scheduler->recomputeAnswers(); ++i) {
  }
  int64_t recomputed = scheduler->totals().recomputedAnswerTokens;
  EXPECT_GE(recomputed, 199);
  EXPECT_LE(recomputed, 199 + 32);
  Tokens next = prompt;
  next.insert(next.end(), recorder.tokens.begin(), recorder.tokens.end());
  Tokens question = randomText(20);
  next.insert(next.end(), question.begin(), question.end());
  RequestResult result = run(next, 1);
  EXPECT_EQ(result.reusedTokens, 899);
  // The same as without a cache.
  Recorder alone;
  open({.slots = 1, .promptRows = 128});
  Request fresh = request(next, 1);
  submit(fresh, alone);
  finishAll();
  EXPECT_EQ(result.tokens, alone.tokens);
}

TEST_F(CheckpointsTest, ReusedByRole) {
  model = *load(dependingOnRole(fakeManifestOfStates()));
  auto session = openSession(1, 64, 100);
  Tokens text = randomText(600);
  feed(*session, text, 64, 0, RowRole::Decode);
  EXPECT_EQ(session->checkpointBytes(), 0u) << "no prompt can reuse decoded positions";
}
} // namespace
