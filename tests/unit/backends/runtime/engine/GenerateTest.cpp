#include "backends/runtime/engine/Generate.h"
#include "tests/unit/backends/runtime/FakeModelFixture.h"
#include "tests/unit/backends/runtime/Generation.h"

#include <gmock/gmock.h>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;
using testing::ElementsAre;
using testing::HasSubstr;

using Row = FakeCall::Row;
static std::vector<FakeCall> &trace = fakeCalls;

namespace {
class GenerateTest : public FakeModelFixture {
protected:
  Result<GenerateResult> run(const std::vector<Tokens> &prompts,
                             RequestListener *listener = nullptr) {
    return generation.run(*model, prompts, listener);
  }

  Generation generation;
  GenerationSettings &settings = generation.settings;
};

TEST_F(GenerateTest, ContinuesGreedily) {
  settings.maxTokens = 6;
  auto result = run({{1, 5, 3}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->texts[0].tokens, fakeContinuation({1, 5, 3}, 6));
  EXPECT_EQ(result->texts[0].finish, Finish::Length);
  EXPECT_EQ(result->totals.promptTokens, 3);
  EXPECT_EQ(result->totals.decodeTokens, 5);
}

TEST_F(GenerateTest, ChunksThePromptAndAsksForItsLastRowOnly) {
  settings.maxTokens = 2;
  generation.promptRows = 4;
  auto result = run({{1, 2, 3, 4, 5, 6}});
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(trace.size(), 3u);
  EXPECT_THAT(trace[0].rows, ElementsAre(Row{1, 0, 0}, Row{2, 0, 1}, Row{3, 0, 2}, Row{4, 0, 3}));
  EXPECT_TRUE(trace[0].outputs.empty());
  EXPECT_THAT(trace[1].rows, ElementsAre(Row{5, 0, 4}, Row{6, 0, 5}));
  EXPECT_THAT(trace[1].outputs, ElementsAre(1));
  EXPECT_THAT(trace[2].rows, ElementsAre(Row{result->texts[0].tokens[0], 0, 6}));
}

TEST_F(GenerateTest, EveryChunkSizeGivesTheSameTokens) {
  settings.maxTokens = 5;
  Tokens expected = fakeContinuation({3, 1, 4, 1, 5, 9, 2, 6}, 5);
  for (int64_t chunk = 1; chunk <= 9; ++chunk) {
    generation.promptRows = chunk;
    auto result = run({{3, 1, 4, 1, 5, 9, 2, 6}});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->texts[0].tokens, expected) << "chunk " << chunk;
  }
}

TEST_F(GenerateTest, RaggedBatchEqualsTheSequencesAlone) {
  settings.maxTokens = 4;
  generation.promptRows = 4;
  std::vector<Tokens> prompts = {{1, 9, 4}, {7}, {1, 2, 3, 4, 5}};
  auto result = run(prompts);
  ASSERT_TRUE(result) << result.error().message;
  for (size_t s = 0; s < prompts.size(); ++s)
    EXPECT_EQ(result->texts[s].tokens, fakeContinuation(prompts[s], 4)) << "sequence " << s;
  // Chunks are filled across sequences, and decoding takes one row of each.
  EXPECT_THAT(trace[0].rows, ElementsAre(Row{1, 0, 0}, Row{9, 0, 1}, Row{4, 0, 2}, Row{7, 1, 0}));
  EXPECT_THAT(trace[0].outputs, ElementsAre(2, 3));
  const auto &tokens = result->texts;
  EXPECT_THAT(trace[3].rows,
              ElementsAre(Row{tokens[0].tokens[0], 0, 3}, Row{tokens[1].tokens[0], 1, 1},
                          Row{tokens[2].tokens[0], 2, 5}));
}

TEST_F(GenerateTest, EndTokenEndsItsSequenceOnly) {
  // 7 + 27 * 1 = 34 = 2 mod 32 is the end token.
  settings.ignoreEos = false;
  settings.maxTokens = 3;
  auto result = run({{27}, {5}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->texts[0].tokens, ElementsAre(fakeEos));
  EXPECT_EQ(result->texts[0].finish, Finish::EndToken);
  EXPECT_EQ(result->texts[1].tokens, fakeContinuation({5}, 3));
}

TEST_F(GenerateTest, FullContextEndsGeneration) {
  settings.maxTokens = 100;
  Tokens prompt(18, 1);
  auto result = run({prompt});
  ASSERT_TRUE(result) << result.error().message;
  // Positions 18 and 19 can still be computed; the token sampled after position 19 does not fit.
  EXPECT_EQ(result->texts[0].tokens, fakeContinuation(prompt, 3));
  EXPECT_EQ(result->texts[0].finish, Finish::ContextFull);
}

TEST_F(GenerateTest, RefusesPromptsThatDoNotFit) {
  auto tooLong = run({Tokens(21, 1)});
  ASSERT_FALSE(tooLong);
  EXPECT_THAT(tooLong.error().message,
              HasSubstr("the prompt has 21 tokens, 1 more than the context of 20 positions"));
  auto empty = run({{}});
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, HasSubstr("no tokens"));
  auto foreign = run({{1, 32}});
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().message,
              HasSubstr("token 32 is not in the model's vocabulary (0 to 31)"));
}

TEST_F(GenerateTest, NaNLogitsAreAnError) {
  auto result = run({{1, fakePoison}});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("not finite"));
}

TEST_F(GenerateTest, ListenerReceivesTheLogitsOfEveryPosition) {
  struct Recorder : RequestListener {
    Tokens rows;
    Status logits(std::span<const float> row) override {
      rows.push_back(*argmax(row));
      return {};
    }
  } recorder;
  settings.maxTokens = 3;
  generation.allLogits = true;
  generation.promptRows = 2;
  auto result = run({{1, 5, 3}}, &recorder);
  ASSERT_TRUE(result) << result.error().message;
  const Tokens &t = result->texts[0].tokens;
  // Three of the prompt, then each generated token except the last.
  EXPECT_THAT(recorder.rows, ElementsAre(fakeNext({1}), fakeNext({1, 5}), t[0], t[1], t[2]));
}

/// Each row takes 6 MiB of scratch memory: six rows with logits are run together.
class LargeRowsTest : public GenerateTest {
  std::string manifest() const override { return withBytesPerRow(fakeManifest(), 6u << 20); }
};

TEST_F(LargeRowsTest, ManySequencesTakeSeveralCalls) {
  settings.maxTokens = 4;
  std::vector<Tokens> prompts;
  for (int32_t s = 0; s < 15; ++s)
    prompts.push_back({s, 5, s});
  auto result = run(prompts);
  ASSERT_TRUE(result) << result.error().message;
  for (size_t s = 0; s < prompts.size(); ++s)
    EXPECT_EQ(result->texts[s].tokens, fakeContinuation(prompts[s], 4)) << s;
  EXPECT_EQ(result->totals.decodeCalls, 3 * 3);
  std::vector<size_t> rows;
  for (const FakeCall &call : trace)
    rows.push_back(call.rows.size());
  // Four rows with logits are always processed in prefill.
  EXPECT_THAT(rows, ElementsAre(12, 12, 12, 9, 6, 6, 3, 6, 6, 3, 6, 6, 3));
}

TEST_F(LargeRowsTest, FinishedTextsDoNotStopOthers) {
  settings.maxTokens = 4;
  settings.ignoreEos = false;
  Tokens ends = {27};
  ASSERT_THAT(fakeContinuation(ends, 1), ElementsAre(model->manifest().eos[0]));
  std::vector<Tokens> prompts(12, ends);
  for (int32_t s = 0; s < 6; ++s)
    prompts[s] = {s, 8};
  auto result = run(prompts);
  ASSERT_TRUE(result) << result.error().message;
  for (size_t s = 0; s < 6; ++s) {
    Tokens all = fakeContinuation(prompts[s], 4);
    all.erase(std::find(all.begin(), all.end(), 2), all.end());
    EXPECT_EQ(result->texts[s].tokens, all) << s;
  }
  EXPECT_EQ(result->totals.decodeCalls, 3);
}

/// A text that repeats its beginning.
void repeat(Generation &generation, const Tokens &period) {
  generation.forcedTokens = period;
  generation.settings.lookup = 8;
}

TEST_F(GenerateTest, LookupVerifiesDraftsInOneCall) {
  repeat(generation, {3, 4, 5});
  settings.maxTokens = 12;
  auto result = run({{3, 4, 5, 3, 4, 5}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->texts[0].tokens, (Tokens{3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(result->totals.decodeTokens, 11);
  EXPECT_GT(result->totals.accepted, 4);
  EXPECT_EQ(result->totals.accepted, result->totals.drafted);
  EXPECT_EQ(result->totals.decodeCalls + result->totals.accepted, 11);
  EXPECT_EQ(static_cast<int64_t>(trace.size()), 1 + result->totals.decodeCalls);
  // The newest token and the first draft: what follows the period's end.
  EXPECT_THAT(trace[1].rows, ElementsAre(Row{3, 0, 6}, Row{4, 0, 7}, Row{5, 0, 8}, Row{3, 0, 9},
                                         Row{4, 0, 10}, Row{5, 0, 11}));
  EXPECT_THAT(trace[1].outputs, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(GenerateTest, LookupDiscardsWrongDrafts) {
  repeat(generation, {4, 9, 9, 9});
  settings.maxTokens = 4;
  auto result = run({{3, 4, 5, 3}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->texts[0].tokens, (Tokens{4, 9, 9, 9}));
  // 5 was drafted after 4, but 9 was sampled.
  EXPECT_THAT(trace[1].rows, ElementsAre(Row{4, 0, 4}, Row{5, 0, 5}, Row{3, 0, 6}));
  EXPECT_EQ(trace[2].rows[0], (Row{9, 0, 5}));
  EXPECT_LT(result->totals.accepted, result->totals.drafted);
}

TEST_F(GenerateTest, LookupChangesNoToken) {
  for (double temperature : {0.0, 3.0})
    for (int32_t start = 0; start < 20; ++start) {
      settings.temperature = temperature;
      settings.topP = 1;
      settings.topK = 0;
      settings.seed = static_cast<uint64_t>(start);
      settings.maxTokens = 17;
      settings.lookup = 0;
      Tokens prompt{start, start, start};
      auto plain = run({prompt});
      settings.lookup = 5;
      auto drafted = run({prompt});
      // If the poisonous token is sampled, both report it.
      ASSERT_EQ(bool(drafted), bool(plain)) << "start " << start;
      if (!plain)
        continue;
      EXPECT_EQ(drafted->texts[0].tokens, plain->texts[0].tokens) << "start " << start;
      EXPECT_EQ(drafted->totals.decodeTokens, plain->totals.decodeTokens);
    }
}

TEST_F(GenerateTest, LookupInABatchSharesTheRows) {
  repeat(generation, {3, 4, 5});
  settings.maxTokens = 12;
  auto result = run({{3, 4, 5, 3, 4, 5}, {3, 4, 5}});
  ASSERT_TRUE(result) << result.error().message;
  for (const RequestResult &generated : result->texts)
    EXPECT_EQ(generated.tokens, (Tokens{3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5}));
  for (size_t call = 1; call < trace.size(); ++call)
    EXPECT_LE(trace[call].rows.size(), 6u) << "the program computes six rows alike";
  EXPECT_GT(result->totals.accepted, 0);
}

TEST_F(GenerateTest, LookupStopsAtTheEndOfTheContext) {
  repeat(generation, {1});
  settings.maxTokens = 100;
  auto result = run({Tokens(8, 1)});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->texts[0].tokens, Tokens(13, 1));
  EXPECT_EQ(result->texts[0].finish, Finish::ContextFull);
  EXPECT_GT(result->totals.accepted, 3);
}

TEST_F(GenerateTest, LookupStopsAtTheEndToken) {
  repeat(generation, {1, 1, 1, fakeEos, 1});
  settings.ignoreEos = false;
  settings.maxTokens = 10;
  auto result = run({{1, 1, 1, fakeEos, 1, 1, 1, fakeEos}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->texts[0].tokens, (Tokens{1, 1, 1, fakeEos}));
  // The end token was drafted as well.
  EXPECT_EQ(result->totals.decodeCalls, 1);
  EXPECT_EQ(result->totals.accepted, 3);
  EXPECT_EQ(result->texts[0].finish, Finish::EndToken);
}

TEST_F(GenerateTest, LookupReturnsTheLogitsOfAcceptedTokens) {
  struct Recorder : RequestListener {
    Tokens tops;
    Status logits(std::span<const float> row) override {
      tops.push_back(*argmax(row));
      return {};
    }
  } plain, drafted;
  repeat(generation, {3, 4, 9});
  settings.maxTokens = 12;
  generation.allLogits = true;
  auto withDrafts = run({{3, 4, 5, 3, 4}}, &drafted);
  settings.lookup = 0;
  auto without = run({{3, 4, 5, 3, 4}}, &plain);
  ASSERT_TRUE(withDrafts && without);
  EXPECT_EQ(drafted.tops, plain.tops);
  EXPECT_LT(withDrafts->totals.decodeCalls, without->totals.decodeCalls);
}

TEST_F(GenerateTest, NoTokensWantedStillReadsThePrompt) {
  settings.maxTokens = 0;
  auto result = run({{1, 2}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->texts[0].tokens.empty());
  EXPECT_EQ(result->totals.promptTokens, 2);
}

TEST_F(GenerateTest, AdditionalEndTokensEndTheText) {
  settings.maxTokens = 6;
  settings.ignoreEos = false;
  settings.endTokens = {fakeContinuation({1, 5, 3}, 3)[2]};
  auto result = run({{1, 5, 3}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->texts[0].finish, Finish::EndToken);
  EXPECT_LE(result->texts[0].tokens.size(), 3u);
}

TEST_F(GenerateTest, ListenerCanStopDecodingOrPrefill) {
  struct Ending : RequestListener {
    int64_t asked = 0, maxCalls = 0;
    bool continues() { return ++asked <= maxCalls; }
    bool shouldContinue() override { return continues(); }
    Result<bool> token(int32_t, std::span<const float>) override { return continues(); }
  } ending;
  settings.maxTokens = 6;
  generation.promptRows = 2;
  ending.maxCalls = 1; // The first chunk of the prompt is computed, the second is not.
  auto result = run({{1, 5, 3, 4}}, &ending);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->texts[0].finish, Finish::Canceled);
  EXPECT_EQ(result->totals.promptTokens, 2);
  EXPECT_TRUE(result->texts[0].tokens.empty());
  ending.asked = 0;
  ending.maxCalls = 3; // The prompt's two chunks and one token are computed.
  result = run({{1, 5, 3, 4}}, &ending);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->texts[0].finish, Finish::StopSequence);
  EXPECT_EQ(result->texts[0].tokens.size(), 2u);
}

TEST_F(GenerateTest, TheFirstErrorEndsAllTexts) {
  struct Failing : RequestListener {
    Result<bool> token(int32_t, std::span<const float>) override { return Error{"stop here"}; }
  } failing;
  struct Counting : RequestListener {
    int tokens = 0;
    Result<bool> token(int32_t, std::span<const float>) override { return ++tokens > 0; }
    std::vector<Finish> ends;
    void finished(const RequestResult &result) override { ends.push_back(result.finish); }
  } counting;
  auto scheduler = Scheduler::create(*model, {.slots = 2, .promptsFirst = true});
  ASSERT_TRUE(scheduler);
  settings.maxTokens = 9;
  auto result =
      generate(**scheduler, generation.requests({{4}, {1}, {3}}), {&counting, &failing, nullptr});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "stop here");
  EXPECT_THAT(counting.ends, ElementsAre(Finish::Canceled));
  EXPECT_EQ(counting.tokens, 1);
  // Nothing of them remains.
  EXPECT_FALSE((*scheduler)->step());
  EXPECT_EQ(trace.size(), 2u);
}

TEST_F(GenerateTest, ARefusedRequestEndsThoseBeforeIt) {
  auto scheduler = Scheduler::create(*model, {.slots = 2});
  ASSERT_TRUE(scheduler);
  auto result = generate(**scheduler, generation.requests({{4}, {}}));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("the prompt has no tokens"));
  EXPECT_FALSE((*scheduler)->step());
  EXPECT_TRUE(trace.empty());
}
} // namespace
