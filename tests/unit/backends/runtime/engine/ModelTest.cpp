#include "backends/cpu/device/Pool.h"
#include "backends/runtime/engine/Sampler.h"
#include "backends/runtime/engine/Session.h"
#include "backends/runtime/profile/Profile.h"
#include "tests/unit/backends/runtime/FakeModelFixture.h"

#include <filesystem>
#include <fstream>
#include <thread>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;

namespace {
/// The predictions of the model after each of the tokens, decoded in one call.
Tokens answersOf(const Model &model, const Tokens &tokens) {
  auto session = Session::create(model, 1, 16);
  if (!session)
    return {};
  for (int32_t token : tokens)
    if (!(*session)->add(0, token, RowRole::Decode, true))
      return {};
  auto logits = (*session)->decode();
  Tokens answers;
  for (size_t at = 0; logits && at < logits->size(); at += fakeVocab) {
    Result<int32_t> token = argmax(logits->subspan(at, fakeVocab));
    answers.push_back(token ? *token : -1);
  }
  return answers;
}

class ModelTest : public FakeModelFixture {
protected:
  const Tokens text = {5, 3, 9, 1, 4};
  /// The prediction of the fixture's model, and of the one that predicts the next token but one.
  Tokens next() const {
    Tokens tokens;
    for (size_t count = 1; count <= text.size(); ++count)
      tokens.push_back(fakeNext({text.begin(), text.begin() + count}));
    return tokens;
  }
  Tokens nextButOne() const {
    Tokens tokens = next();
    for (int32_t &token : tokens)
      token = (token + 1) % fakeVocab;
    return tokens;
  }
  std::unique_ptr<Model> loadOther(unsigned threads) const {
    auto other = load(dependingOnRole(fakeManifest()), CpuDevice(), threads);
    return other ? *std::move(other) : nullptr;
  }
};

TEST_F(ModelTest, TwoModelsHaveCodeAndThreadsOfTheirOwn) {
  std::unique_ptr<Model> other = loadOther(3);
  ASSERT_TRUE(other);
  Runtime &first = model->runtime(), &second = other->runtime();
  EXPECT_EQ(first.pool().threads(), 2u);
  EXPECT_EQ(second.pool().threads(), 3u);
  EXPECT_EQ(answersOf(*model, text), next());
  EXPECT_EQ(first.pool().forks(), 1u);
  EXPECT_EQ(second.pool().forks(), 0u);
  EXPECT_EQ(answersOf(*other, text), nextButOne());
  EXPECT_EQ(first.pool().forks(), 1u);
  EXPECT_EQ(second.pool().forks(), 1u);
  other.reset();
  EXPECT_EQ(answersOf(*model, text), next());
}

TEST_F(ModelTest, AProfileRecordsItsModelOnly) {
  std::unique_ptr<Model> other = loadOther(2);
  ASSERT_TRUE(other);
  Profile profile([&](const char *name) { return model->symbol(name); }, model->runtime(), false);
  profile.start();
  answersOf(*other, text);
  EXPECT_EQ(profile.calls(), 0);
  EXPECT_TRUE(profile.entries().empty());
  answersOf(*model, text);
  profile.stop();
  answersOf(*model, text);
  EXPECT_EQ(profile.calls(), 1);
  ASSERT_EQ(profile.entries().size(), 1u);
  EXPECT_EQ(profile.entries().front().name, "head");
  EXPECT_EQ(profile.entries().front().launches, 2);
}

TEST_F(ModelTest, TwoModelsRunAtTheSameTime) {
  std::unique_ptr<Model> other = loadOther(2);
  ASSERT_TRUE(other);
  constexpr int rounds = 100;
  auto count = [this](const Model &which, const Tokens &expected, int &right) {
    for (int round = 0; round < rounds; ++round)
      right += answersOf(which, text) == expected;
  };
  int right = 0, otherRight = 0;
  std::thread thread([&] { count(*other, nextButOne(), otherRight); });
  count(*model, next(), right);
  thread.join();
  EXPECT_EQ(right, rounds);
  EXPECT_EQ(otherRight, rounds);
}

TEST_F(ModelTest, MappedWeightsAreNotAvailableMemory) {
  std::filesystem::create_directories(folder.file("root/proc"));
  auto setAvailable = [&](const char *kilobytes) {
    std::ofstream(folder.file("root/proc/meminfo")) << "MemAvailable: " << kilobytes << " kB\n";
  };
  uint64_t weights = model->weights().size();
  ASSERT_GT(weights, 0u);
  setAvailable("1000");
  EXPECT_EQ(model->memoryBesidesWeights(folder.file("root")), 1024000 - weights);
  setAvailable("0");
  EXPECT_EQ(model->memoryBesidesWeights(folder.file("root")), 0u);
  // A copy in huge pages has been allocated already.
  auto file = program::ProgramFile::open(folder.file("fake"));
  ASSERT_TRUE(file) << file.error().message;
  auto copied = Model::load(*std::move(file), CpuDevice(), 1, Pages::Huge);
  ASSERT_TRUE(copied) << copied.error().message;
  setAvailable("1000");
  EXPECT_EQ((*copied)->memoryBesidesWeights(folder.file("root")), 1024000u);
}

// The share was determined before the weights were read into memory, or mapped.
TEST_F(ModelTest, RanksShareMemory) {
  uint64_t weights = model->weights().size();
  Resources resources(1);
  resources.memory = weights + 1000;
  for (Pages pages : {Pages::Small, Pages::Huge}) {
    auto file = program::ProgramFile::open(folder.file("fake"));
    ASSERT_TRUE(file) << file.error().message;
    auto shared = Model::load(*std::move(file), CpuDevice(), resources, pages);
    ASSERT_TRUE(shared) << shared.error().message;
    EXPECT_EQ((*shared)->memory(), weights + 1000);
    EXPECT_EQ((*shared)->memoryBesidesWeights(), 1000u);
  }
}

/// A device of an earlier build, whose table lacks the last function.
class EarlierDevice final : public Device {
  class EarlierRuntime final : public Runtime {
  public:
    EarlierRuntime() { calls.size = sizeof calls - sizeof calls.shareRows; }
    const RuntimeTable &table() const override { return calls; }
    WorkPool &pool() override { return workers; }

  private:
    RuntimeTable calls{};
    Pool workers{1};
  };

public:
  Status check(const std::string &, const std::vector<std::string> &) const override { return {}; }
  Result<std::unique_ptr<Runtime>> start(unsigned,
                                         const std::vector<std::string> &) const override {
    return std::unique_ptr<Runtime>(new EarlierRuntime);
  }
  Peaks measurePeaks(WorkPool &, const Manifest &) const override { return {}; }
};

TEST_F(ModelTest, CodeThatNeedsMoreFunctionsIsRefused) {
  auto loaded = load(fakeManifest(), EarlierDevice());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message,
            "the model's code needs a table of runtime functions of 72 bytes, and this one has 64; "
            "compile it again");
}
} // namespace
