#include "backends/runtime/commands/BatchCommand.h"
#include "backends/runtime/commands/Bench.h"
#include "tests/unit/backends/runtime/FakeModelFixture.h"
#include "tests/unit/backends/runtime/Generation.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <random>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;
using testing::ElementsAre;

using Row = FakeCall::Row;

namespace {
/// A model that predicts the next token but one after a decoded row.
class RolesTest : public FakeModelFixture {
protected:
  std::string manifest() const override { return dependingOnRole(fakeManifest()); }

  void open(int64_t sequences, int64_t chunk = 16) {
    auto created = Session::create(*model, sequences, chunk);
    ASSERT_TRUE(created) << created.error().message;
    session = *std::move(created);
  }
  /// Queues rows, the last one with logits.
  void push(int64_t sequence, const Tokens &tokens, RowRole role) {
    for (size_t i = 0; i < tokens.size(); ++i)
      ASSERT_TRUE(session->add(sequence, tokens[i], role, i + 1 == tokens.size()));
  }
  void pushPrompt(int64_t sequence, const Tokens &tokens) {
    push(sequence, tokens, RowRole::Prompt);
  }
  void pushDecode(int64_t sequence, const Tokens &tokens) {
    push(sequence, tokens, RowRole::Decode);
  }
  /// The predictions of the model after each row with logits.
  Tokens run() {
    auto logits = session->decode();
    if (!logits)
      return {};
    Tokens tops;
    for (size_t at = 0; at < logits->size(); at += fakeVocab)
      tops.push_back(top(logits->subspan(at, fakeVocab)));
    return tops;
  }
  static int32_t top(std::span<const float> logits) {
    Result<int32_t> token = argmax(logits);
    return token ? *token : -1;
  }
  static int32_t afterPrompt(const Tokens &tokens) { return fakeNext(tokens); }
  static int32_t afterDecode(const Tokens &tokens) { return (fakeNext(tokens) + 1) % fakeVocab; }

  /// Two turns of a conversation; the prompt of the second one contains the first prompt (two
  /// tokens) and answer (four, of which the last is not computed). Returns the number of cached
  /// tokens; its calls are in `fakeCalls`.
  int64_t reusedBySecondTurn(int64_t lookup, const std::function<void(Scheduler &)> &idle = {}) {
    fakeCalls.clear();
    auto scheduler = Scheduler::create(*model, {.slots = 1});
    if (!scheduler)
      return -1;
    Generation generation;
    generation.settings.maxTokens = 4;
    generation.settings.lookup = lookup;
    generation.forcedTokens = {8, 9, 8, 9};
    auto first = generate(**scheduler, generation.requests({{1, 5}}));
    EXPECT_TRUE(first) << first.error().message;
    expectRoles({2});
    fakeCalls.clear();
    if (idle)
      idle(**scheduler);
    auto requests = generation.requests({{1, 5, 8, 9, 8, 9, 7}});
    requests[0].maxReused = 7;
    auto second = generate(**scheduler, requests);
    EXPECT_TRUE(second) << second.error().message;
    return second ? second->texts[0].reusedTokens : -1;
  }

  static std::vector<std::pair<RowRole, std::vector<Row>>> calls() {
    std::vector<std::pair<RowRole, std::vector<Row>>> all;
    for (const FakeCall &call : fakeCalls)
      all.emplace_back(call.role, call.rows);
    return all;
  }
  /// Whether each row has the role of its position, for sequences with prompts of these lengths.
  static void expectRoles(const std::vector<size_t> &prompts) {
    ASSERT_FALSE(fakeCalls.empty());
    for (const FakeCall &call : fakeCalls)
      for (const Row &row : call.rows) {
        bool isPrompt = row.position < static_cast<int32_t>(prompts[row.sequence]);
        EXPECT_EQ(call.role, isPrompt ? RowRole::Prompt : RowRole::Decode)
            << "sequence " << row.sequence << ", position " << row.position << " in a call of "
            << call.rows.size();
      }
  }

  std::unique_ptr<Session> session;
};

TEST_F(RolesTest, EachRoleHasACallAndLogitsKeepTheirOrder) {
  open(4);
  pushPrompt(0, {1, 5});
  pushPrompt(2, {9});
  EXPECT_THAT(run(), ElementsAre(afterPrompt({1, 5}), afterPrompt({9})));
  fakeCalls.clear();
  pushDecode(0, {3});
  pushPrompt(1, {4, 6});
  pushDecode(2, {8});
  pushPrompt(3, {7});
  EXPECT_THAT(run(), ElementsAre(afterDecode({1, 5, 3}), afterPrompt({4, 6}), afterDecode({9, 8}),
                                 afterPrompt({7})));
  EXPECT_THAT(
      calls(),
      ElementsAre(std::pair(RowRole::Prompt, std::vector{Row{4, 1, 0}, Row{6, 1, 1}, Row{7, 3, 0}}),
                  std::pair(RowRole::Decode, std::vector{Row{3, 0, 2}, Row{8, 2, 1}})));
  EXPECT_THAT(fakeCalls[0].outputs, ElementsAre(1, 2));
  EXPECT_THAT(fakeCalls[1].outputs, ElementsAre(0, 1));
}

TEST_F(RolesTest, RowsOfASequenceKeepTheirOrder) {
  open(2);
  pushPrompt(0, {1, 5});
  pushDecode(0, {3});
  pushDecode(1, {2});
  pushPrompt(1, {6});
  EXPECT_THAT(run(), ElementsAre(afterPrompt({1, 5}), afterDecode({1, 5, 3}), afterDecode({2}),
                                 afterPrompt({2, 6})));
  // A prompt that follows a decoded row waits for it.
  EXPECT_THAT(calls(),
              ElementsAre(std::pair(RowRole::Prompt, std::vector{Row{1, 0, 0}, Row{5, 0, 1}}),
                          std::pair(RowRole::Decode, std::vector{Row{3, 0, 2}, Row{2, 1, 0}}),
                          std::pair(RowRole::Prompt, std::vector{Row{6, 1, 1}})));
}

TEST_F(RolesTest, AnyOrderGivesTheSameLogits) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    constexpr int64_t sequences = 5;
    open(sequences);
    Tokens expected;
    for (int64_t s = 0; s < sequences; ++s) {
      Tokens text;
      for (size_t i = 0, rows = random() % 4; i < rows; ++i) {
        text.push_back(static_cast<int32_t>(random() % 30));
        bool prompt = random() % 2, wanted = random() % 3 > 0;
        ASSERT_TRUE(
            session->add(s, text.back(), prompt ? RowRole::Prompt : RowRole::Decode, wanted));
        if (wanted)
          expected.push_back(prompt ? afterPrompt(text) : afterDecode(text));
      }
    }
    ASSERT_EQ(run(), expected) << "round " << round;
  }
}

TEST_F(RolesTest, PromptsAreComputedAsPromptsForAnyChunkSize) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    Generation generation;
    generation.settings.maxTokens = 1 + static_cast<int64_t>(random() % 6);
    generation.promptRows = 1 + static_cast<int64_t>(random() % 7);
    generation.settings.lookup = static_cast<int64_t>(random() % 4);
    if (random() % 2)
      generation.forcedTokens = {3, 4, 5};
    std::vector<Tokens> prompts(1 + random() % 3);
    std::vector<size_t> sizes;
    for (Tokens &prompt : prompts) {
      prompt.resize(1 + random() % 12);
      for (size_t i = 0; i < prompt.size(); ++i)
        prompt[i] = static_cast<int32_t>(3 + i % 3);
      sizes.push_back(prompt.size());
    }
    fakeCalls.clear();
    // Sampling the poisonous token is an error.
    (void)generation.run(*model, prompts);
    expectRoles(sizes);
  }
}

TEST_F(RolesTest, ACachedAnswerIsRecomputedAsAPrompt) {
  // With drafts, whose rows are decoded as well.
  for (int64_t lookup : {0, 3}) {
    EXPECT_EQ(reusedBySecondTurn(lookup), 2);
    EXPECT_EQ(calls().front(),
              std::pair(RowRole::Prompt, std::vector{Row{8, 0, 2}, Row{9, 0, 3}, Row{8, 0, 4},
                                                     Row{9, 0, 5}, Row{7, 0, 6}}));
    expectRoles({7});
  }
}

TEST_F(RolesTest, ACachedAnswerIsRecomputedBetweenTurns) {
  for (int64_t lookup : {0, 3}) {
    EXPECT_EQ(reusedBySecondTurn(lookup,
                                 [](Scheduler &scheduler) {
                                   EXPECT_FALSE(scheduler.recomputeAnswers());
                                   EXPECT_EQ(scheduler.totals().recomputedAnswerTokens, 3);
                                   EXPECT_FALSE(scheduler.recomputeAnswers());
                                 }),
              5);
    ASSERT_GE(calls().size(), 2u);
    EXPECT_EQ(calls()[0],
              std::pair(RowRole::Prompt, std::vector{Row{8, 0, 2}, Row{9, 0, 3}, Row{8, 0, 4}}));
    EXPECT_EQ(calls()[1], std::pair(RowRole::Prompt, std::vector{Row{9, 0, 5}, Row{7, 0, 6}}));
  }
}

// Answers are recomputed in several calls, that of the last request first; a request that needs the
// slot ends this.
TEST_F(RolesTest, AnswersAreRecomputedPieceByPiece) {
  auto scheduler = *Scheduler::create(*model, {.slots = 2, .promptRows = 8});
  Generation generation;
  generation.settings.maxTokens = 12;
  ASSERT_TRUE(generate(*scheduler, generation.requests({{1, 5}, {4}})));
  fakeCalls.clear();
  EXPECT_TRUE(scheduler->recomputeAnswers());
  ASSERT_EQ(fakeCalls.size(), 1u);
  int32_t last = fakeCalls[0].rows[0].sequence;
  EXPECT_EQ(fakeCalls[0].rows.size(), 8u);
  EXPECT_TRUE(scheduler->recomputeAnswers());
  EXPECT_EQ(scheduler->totals().recomputedAnswerTokens, 11)
      << "the last token has not been computed";
  for (const FakeCall &call : fakeCalls)
    for (const Row &row : call.rows)
      EXPECT_EQ(row.sequence, last);
  // Another conversation takes the slot that was used least recently, whose answer is forgotten.
  ASSERT_TRUE(generate(*scheduler, generation.requests({{9, 9, 9}})));
  int64_t before = scheduler->totals().recomputedAnswerTokens;
  for (int i = 0; i < 100 && scheduler->recomputeAnswers(); ++i) {
  }
  EXPECT_EQ(scheduler->totals().recomputedAnswerTokens - before, 11);
}

TEST_F(RolesTest, BatchesComputePromptsAsPrompts) {
  RunArguments arguments;
  arguments.file = folder.file("requests.jsonl");
  arguments.output = folder.file("results.jsonl");
  arguments.batch = 2;
  arguments.settings.maxTokens = 3;
  arguments.prefillChunk = 2;
  arguments.settings.temperature = 0;
  arguments.settings.ignoreEos = true;
  std::ofstream(*arguments.file) << "{\"tokens\": [1, 5, 3]}\n{\"tokens\": [4, 6, 4]}\n"
                                    "{\"tokens\": [9, 9, 9]}\n";
  Status done = batchCommand(*model, model->manifest(), nullptr, arguments);
  ASSERT_TRUE(done) << done.error().message;
  expectRoles({3, 3});
}

TEST_F(RolesTest, BenchMeasuresPromptsAndDecoding) {
  BenchArguments arguments;
  arguments.repeat = 1;
  ASSERT_TRUE(runBench(*model, {false, 5, 1, 3}, arguments));
  expectRoles({8});
  fakeCalls.clear();
  ASSERT_TRUE(runBench(*model, {true, 5, 2, 3}, arguments));
  expectRoles({3, 3});
}

TEST_F(RolesTest, BenchFillsTheDepthOnce) {
  BenchArguments arguments;
  arguments.repeat = 3;
  for (int64_t chunk = 1; chunk < 8; ++chunk) {
    fakeCalls.clear();
    arguments.prefillChunk = chunk;
    ASSERT_TRUE(runBench(*model, {true, 5, 3, 3}, arguments));
    size_t prompts = 0, decoded = 0;
    for (const FakeCall &call : fakeCalls)
      (call.role == RowRole::Prompt ? prompts : decoded) += call.rows.size();
    EXPECT_EQ(prompts, 3u * 3) << chunk;
    EXPECT_EQ(decoded, (1 + 3) * 3u * 5) << chunk;
    fakeCalls.clear();
    ASSERT_TRUE(runBench(*model, {false, 5, 1, 3}, arguments));
    prompts = 0;
    for (const FakeCall &call : fakeCalls)
      prompts += call.rows.size();
    EXPECT_EQ(prompts, 3 + (1 + 3) * 5u) << chunk;
  }
}

/// A model whose arithmetic does not depend on roles.
class NoRolesTest : public RolesTest {
  std::string manifest() const override { return fakeManifest(); }
};

TEST_F(NoRolesTest, AllRowsShareACall) {
  open(2);
  pushPrompt(0, {1, 5});
  pushDecode(0, {3});
  pushPrompt(1, {2});
  EXPECT_THAT(run(), ElementsAre(afterPrompt({1, 5}), afterPrompt({1, 5, 3}), afterPrompt({2})));
  EXPECT_EQ(fakeCalls.size(), 1u);
}

TEST_F(NoRolesTest, AnAnswerInTheCacheIsReused) {
  EXPECT_EQ(reusedBySecondTurn(
                0, [](Scheduler &scheduler) { EXPECT_FALSE(scheduler.recomputeAnswers()); }),
            5);
  EXPECT_EQ(calls().front(), std::pair(RowRole::Prompt, std::vector{Row{9, 0, 5}, Row{7, 0, 6}}));
}

/// Rows that also depend on the sequence length.
class RolesAndLengthsTest : public RolesTest {
  std::string manifest() const override { return dependingOnRole(fakeManifestOfLengths()); }
};

TEST_F(RolesAndLengthsTest, RowsAreRecomputedInTheirRoles) {
  open(1, 4);
  pushPrompt(0, {5, 3, 9, 1, 4, 4});
  run();
  pushDecode(0, {7, 2});
  run();
  session->rewind(0, 7);
  pushPrompt(0, {6});
  EXPECT_THAT(run(), ElementsAre(afterPrompt({5, 3, 9, 1, 4, 4, 7, 6})));
  fakeCalls.clear();
  pushDecode(0, {8});
  EXPECT_THAT(run(), ElementsAre(afterPrompt({5, 3, 9, 1, 4, 4, 7, 6, 8})));
  EXPECT_EQ(session->recomputedTokens(), 8);
  EXPECT_THAT(calls(),
              ElementsAre(std::pair(RowRole::Prompt, std::vector{Row{5, 0, 0}, Row{3, 0, 1},
                                                                 Row{9, 0, 2}, Row{1, 0, 3}}),
                          std::pair(RowRole::Prompt, std::vector{Row{4, 0, 4}, Row{4, 0, 5}}),
                          std::pair(RowRole::Decode, std::vector{Row{7, 0, 6}}),
                          std::pair(RowRole::Prompt, std::vector{Row{6, 0, 7}}),
                          std::pair(RowRole::Decode, std::vector{Row{8, 0, 8}})));
}
} // namespace
