#include "backends/runtime/commands/BatchCommand.h"
#include "backends/runtime/commands/BatchResults.h"
#include "backends/runtime/commands/GenerationOptions.h"
#include "tests/unit/backends/runtime/FakeModelFixture.h"
#include "tests/unit/backends/runtime/Generation.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>
#include <thread>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

namespace {
class BatchTest : public FakeModelFixture {
protected:
  void SetUp() override {
    FakeModelFixture::SetUp();
    arguments.file = folder.file("requests.jsonl");
    arguments.output = folder.file("results.jsonl");
    arguments.batch = 2;
    arguments.settings.seed = 7;
    arguments.settings.maxTokens = 5;
    arguments.settings.temperature = 0;
    arguments.settings.ignoreEos = true;
  }

  void write(const std::string &path, const std::string &content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  std::string read(const std::string &path) {
    std::ostringstream all;
    all << std::ifstream(path, std::ios::binary).rdbuf();
    return all.str();
  }

  /// The results of `requests`; an error ends the test.
  std::string run(const std::string &requests) {
    write(*arguments.file, requests);
    Status done = batchCommand(*model, model->manifest(), nullptr, arguments);
    EXPECT_TRUE(done) << done.error().message;
    return read(*arguments.output);
  }
  std::string refusal(const std::string &requests) {
    write(*arguments.file, requests);
    Status done = batchCommand(*model, model->manifest(), nullptr, arguments);
    EXPECT_FALSE(done);
    return done ? "" : done.error().message;
  }
  std::vector<nlohmann::json> rows(const std::string &text) {
    std::vector<nlohmann::json> all;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      all.push_back(nlohmann::json::parse(line));
    return all;
  }
  Tokens alone(const Tokens &prompt, uint64_t seed, int64_t count) {
    Generation generation;
    generation.settings = arguments.settings;
    generation.settings.maxTokens = count;
    generation.settings.seed = seed;
    auto result = generation.run(*model, {prompt});
    return result ? result->texts[0].tokens : Tokens();
  }

  RunArguments arguments;
};

const std::string requests = "{\"tokens\": [1, 5, 3], \"id\": \"a\"}\n"
                             "{\"tokens\": [2], \"max_tokens\": 1}\n"
                             "  \n"
                             "{\"tokens\": [4, 4], \"n\": 3, \"seed\": 11, \"id\": {\"k\": 1}}\n"
                             "{\"tokens\": [1, 2, 3, 4, 5, 6, 7]}";

TEST_F(BatchTest, ResultsDoNotDependOnTheBatch) {
  arguments.settings.temperature = 1;
  for (int64_t batch : {1, 2, 3, 100}) {
    arguments.batch = batch;
    std::filesystem::remove(*arguments.output);
    auto results = rows(run(requests));
    ASSERT_EQ(results.size(), 6u);
    std::vector<int64_t> lines;
    for (const auto &row : results)
      lines.push_back(row["line"]);
    EXPECT_THAT(lines, ElementsAre(1, 2, 4, 4, 4, 5));
    EXPECT_EQ(results[0]["id"], "a");
    EXPECT_EQ(results[1]["new_tokens"], 1);
    EXPECT_EQ(results[4]["sample"], 2);
    EXPECT_EQ(results[4]["id"], nlohmann::json::parse("{\"k\": 1}"));
    EXPECT_EQ(results[2]["seed"], 11);
    for (auto [index, prompt] : {std::pair(0, Tokens{1, 5, 3}),
                                 {2, Tokens{4, 4}},
                                 {3, Tokens{4, 4}},
                                 {4, Tokens{4, 4}},
                                 {5, Tokens{1, 2, 3, 4, 5, 6, 7}}})
      EXPECT_EQ(results[index]["tokens"].get<Tokens>(),
                alone(prompt, results[index]["seed"].get<uint64_t>(), 5))
          << batch << " " << index;
    EXPECT_NE(results[2]["tokens"], results[3]["tokens"]);
  }
}

TEST_F(BatchTest, ExistingResultsAreKept) {
  std::string whole = run(requests);
  EXPECT_EQ(run(requests), whole);
  // Truncated at every byte: the incomplete last line is computed again.
  for (size_t size = 0; size < whole.size(); size += 7) {
    write(*arguments.output, whole.substr(0, size));
    EXPECT_EQ(run(requests), whole) << size;
  }
}

/// The seed may be the request's, the command line's or random.
TEST_F(BatchTest, EachSampleIsReproducibleFromItsSeed) {
  arguments.settings.temperature = 1;
  arguments.settings.logitBias = {{fakePoison, -std::numeric_limits<float>::infinity()}};
  for (const char *seed : {", \"seed\": 11", "", "random"}) {
    bool random = seed == std::string("random");
    if (random)
      arguments.settings.seed.reset();
    std::string request = "{\"tokens\": [4, 4], \"n\": 3" + std::string(random ? "" : seed) + "}";
    std::filesystem::remove(*arguments.output);
    auto results = rows(run(request));
    ASSERT_EQ(results.size(), 3u);
    for (size_t i = 0; i < results.size(); ++i) {
      for (size_t j = 0; j < i; ++j)
        EXPECT_NE(results[i]["seed"], results[j]["seed"]) << seed;
      nlohmann::json again = {{"tokens", {4, 4}}, {"seed", results[i]["seed"]}};
      std::filesystem::remove(*arguments.output);
      auto result = rows(run(again.dump()));
      ASSERT_EQ(result.size(), 1u);
      EXPECT_EQ(result[0]["seed"], results[i]["seed"]) << seed;
      EXPECT_EQ(result[0]["tokens"], results[i]["tokens"]) << seed;
    }
  }
}

TEST_F(BatchTest, ZeroNewTokensNeedNoCall) {
  arguments.settings.maxTokens = 0;
  auto results = rows(run("{\"tokens\": [4, 4], \"n\": 2}\n{\"tokens\": [4], \"max_tokens\": 1}"));
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[1]["tokens"], nlohmann::json::array());
  EXPECT_EQ(results[1]["finish"], "length");
  EXPECT_NE(results[0]["seed"], results[1]["seed"]);
  EXPECT_EQ(results[2]["tokens"].size(), 1u);
  EXPECT_EQ(fakeCalls.size(), 1u);
}

TEST_F(BatchTest, PromptsShareNoCalls) {
  arguments.prefillChunk = 2;
  run("{\"tokens\": [1, 5, 3], \"max_tokens\": 3}\n{\"tokens\": [4], \"max_tokens\": 1}\n"
      "{\"tokens\": [6], \"max_tokens\": 2}");
  std::vector<size_t> sizes;
  for (const FakeCall &call : fakeCalls)
    sizes.push_back(call.rows.size());
  // Prompts of 2 + 1, 1 and 1 rows, then the remaining texts decode together, then one alone.
  EXPECT_THAT(sizes, ElementsAre(2, 1, 1, 1, 2, 1));
  EXPECT_EQ(fakeCalls[3].rows[0], (FakeCall::Row{6, 1, 0})) << "in the slot that has become free";
}

TEST_F(BatchTest, AFailureIsReportedAndResultsAreKept) {
  EXPECT_THAT(refusal("{\"tokens\": [4], \"max_tokens\": 1}\n{\"tokens\": [" +
                      std::to_string(fakePoison) + "]}"),
              HasSubstr("not finite"));
  EXPECT_THAT(rows(read(*arguments.output)), testing::SizeIs(1));
}

TEST_F(BatchTest, OneFileHasOneWriter) {
  std::string whole = run(requests), half = whole.substr(0, whole.size() / 2);
  write(*arguments.output, half);
  {
    auto other = BatchResults::open(arguments.output);
    ASSERT_TRUE(other);
    EXPECT_EQ(refusal(requests),
              "another batch is writing to '" + *arguments.output +
                  "'; wait until it has finished or choose another file with -o");
    EXPECT_EQ(read(*arguments.output), half);
  }
  EXPECT_EQ(run(requests), whole);
  // Both have started without a file.
  std::filesystem::remove(*arguments.output);
  auto first = BatchResults::open(arguments.output), second = BatchResults::open(arguments.output);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE((*first)->begin());
  Status late = (*second)->begin();
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, StartsWith("another batch is writing to "));
  first->reset();
  second->reset();
  EXPECT_EQ(run(requests), whole);
}

TEST_F(BatchTest, AnInvalidLastRequestIsReportedBeforeAnythingIsWritten) {
  EXPECT_THAT(refusal(requests + "\nx"), StartsWith("line 6 of the requests: not JSON"));
  EXPECT_FALSE(std::filesystem::exists(*arguments.output));
  std::string whole = run(requests), cut = whole.substr(0, whole.size() / 2);
  write(*arguments.output, cut);
  refusal(requests + "\nx");
  EXPECT_EQ(read(*arguments.output), cut);
}

TEST_F(BatchTest, RequestsFromAPipe) {
  std::string whole = run(requests), pipe = folder.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { write(pipe, requests); });
  arguments.file = pipe;
  arguments.output = folder.file("others.jsonl");
  Status done = batchCommand(*model, model->manifest(), nullptr, arguments);
  writer.join();
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(read(*arguments.output), whole);
}

TEST_F(BatchTest, OtherFilesAreRefusedAndLeftAlone) {
  std::string whole = run(requests);
  auto refused = [&](const std::string &there, const std::string &wanted) {
    write(*arguments.output, there);
    EXPECT_THAT(refusal(wanted), HasSubstr("results.jsonl' ")) << there;
    EXPECT_EQ(read(*arguments.output), there);
  };
  refused("some notes", requests);
  refused("some notes\n", requests);
  refused(whole, "{\"tokens\": [1, 5, 3], \"id\": \"b\"}");
  refused(whole, "{\"tokens\": [1, 5, 3], \"id\": \"a\"}");
  refused(whole, "{\"tokens\": [1, 5], \"id\": \"a\"}");
  EXPECT_THAT(refusal("{\"tokens\": [1, 5], \"id\": \"a\"}"),
              HasSubstr("is not the result of line 1 of the requests with these options and this "
                        "program; choose another file with -o"));
  EXPECT_THAT(
      refusal("{\"tokens\": [1, 5, 3], \"id\": \"a\"}"),
      testing::AllOf(HasSubstr("line 2 of '"), HasSubstr("is one result more than requested")));
  write(*arguments.output, "some notes");
  EXPECT_THAT(refusal(requests), HasSubstr("is not a result of a batch"));
  write(*arguments.output, whole);
  EXPECT_THAT(refusal(requests.substr(0, requests.find('\n'))),
              HasSubstr("is one result more than requested"));
  arguments.output = folder.file("missing/results.jsonl");
  EXPECT_THAT(refusal(requests), HasSubstr("cannot write the results to"));
}

TEST_F(BatchTest, OnlyRegularFilesTakeResults) {
  auto refused = [&](const std::string &path, const std::string &why) {
    arguments.output = path;
    EXPECT_EQ(refusal(requests),
              "'" + path + "' cannot be written (" + why + ")" +
                  (why.find("link") == why.npos ? "; " : "; name the file itself or ") +
                  "choose another file with -o");
  };
  std::string link = folder.file("link"), pipe = folder.file("pipe");
  ASSERT_EQ(symlink("absent", link.c_str()), 0);
  refused(link, "it is a symbolic link, which is not followed");
  EXPECT_FALSE(std::filesystem::exists(folder.file("absent")));
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  refused(pipe, "it is not a regular file");
  refused("/dev/null", "/dev cannot hold regular files");
  refused(folder.file(""), "it does not name a file");
}

TEST_F(BatchTest, ResultsOfOtherRequestsAndOptionsAreNotKept) {
  const std::string request = "{\"tokens\": [1, 5, 3]}", why = "is not the result of line 1";
  run(request);
  EXPECT_THAT(refusal("{\"tokens\": [1, 6, 3]}"), HasSubstr(why));
  EXPECT_THAT(refusal("{\"tokens\": [1, 5, 3], \"seed\": 3}"), HasSubstr(why));
  EXPECT_THAT(refusal("{\"tokens\": [1, 5, 3], \"max_tokens\": 2}"), HasSubstr(why));
  RunArguments before = arguments;
  auto refused = [&](auto change) {
    change();
    EXPECT_THAT(refusal(request), HasSubstr(why));
    arguments = before;
  };
  refused([&] { arguments.settings.temperature = 1.5; });
  refused([&] { arguments.settings.minP = 0.25; });
  refused([&] { *arguments.settings.maxTokens += 1; });
  refused([&] { arguments.settings.seed = 9; });
  refused([&] { arguments.settings.stops = {"x"}; });
  refused([&] { arguments.settings.logitBias = {{3, 1.5f}}; });
  // Results do not depend on the batch size and on the number of threads.
  arguments.batch = 1;
  EXPECT_THAT(rows(run(request)), testing::SizeIs(1));
}

TEST_F(BatchTest, InvalidRequestsAreRejected) {
  auto why = [&](const std::string &line) { return refusal("{\"tokens\": [1]}\n" + line); };
  EXPECT_THAT(why("prompt"), StartsWith("line 2 of the requests: not JSON"));
  EXPECT_EQ(why(R"({"tokens": [1], "n": 1, "n": 2})"),
            "line 2 of the requests: the key \"n\" occurs twice in one object; leave one out");
  EXPECT_THAT(why(R"({"messages": [{"role": "user", "role": "user"}]})"),
              HasSubstr("the key \"role\" occurs twice in one object"));
  EXPECT_THAT(why(R"({"a": {"b": 1}, "c": {"b": 1}})"), HasSubstr("the key \"a\" is unknown"));
  EXPECT_EQ(why(R"({"prompt": "a\\\ud83d\ude00 \ud800 b"})"),
            "line 2 of the requests: \\ud800 is an unpaired surrogate; write both halves or the "
            "character itself");
  EXPECT_THAT(why(R"({"prompt": "\ud83dx"})"), HasSubstr(": \\ud83d is an unpaired surrogate"));
  EXPECT_THAT(why(R"({"prompt": "\uDC00"})"), HasSubstr(": \\uDC00 is an unpaired surrogate"));
  EXPECT_THAT(why(R"({"prompt": "\\ud800"})"), HasSubstr("has no tokenizer"));
  EXPECT_THAT(why("[1]"), HasSubstr("a JSON object is expected"));
  EXPECT_THAT(why("{\"tokens\": [1], \"id\": " + std::string(300000, '[')),
              StartsWith("line 2 of the requests: nested more than 100 deep"));
  EXPECT_THAT(
      why("{\"tokens\": [1], \"id\": " + std::string(300000, '[') + std::string(300000, ']') + "}"),
      StartsWith("line 2 of the requests: nested more than 100 deep"));
  EXPECT_THAT(why("{\"id\": 1}"),
              HasSubstr("one of \"prompt\", \"tokens\" and \"messages\" is expected"));
  EXPECT_THAT(why("{\"prompt\": 1}"), HasSubstr("\"prompt\" is not a string"));
  EXPECT_THAT(why("{\"prompt\": \"x\"}"), HasSubstr("or pass ids as \"tokens\""));
  EXPECT_THAT(why("{\"tokens\": 3}"), HasSubstr("\"tokens\" is not an array of ids"));
  EXPECT_THAT(why("{\"tokens\": [-1]}"), HasSubstr("\"tokens\" is not a whole number from 0 to"));
  EXPECT_THAT(why("{\"tokens\": []}"), HasSubstr("the prompt has no tokens"));
  EXPECT_THAT(why("{\"tokens\": [1], \"n\": 0}"), HasSubstr("\"n\" is not a whole number from 1"));
  EXPECT_THAT(why("{\"tokens\": [1], \"seed\": -1}"), HasSubstr("\"seed\" is not a whole number"));
  EXPECT_THAT(why("{\"tokens\": [1], \"max_tokens\": 1.5}"), HasSubstr("\"max_tokens\" is not a"));
  EXPECT_THAT(why("{\"tokens\": [1], \"stream\": true}"),
              HasSubstr("the key \"stream\" is unknown"));
  std::string ids = "1";
  for (int i = 1; i < 23; ++i)
    ids += ",1";
  EXPECT_THAT(why("{\"tokens\": [" + ids + "]}"),
              HasSubstr("has 23 tokens, 3 more than the context of 20 positions"));
}

TEST(LogitBias, ParsesIdsAndNumbers) {
  auto bias = parseLogitBias("13=-2.5");
  ASSERT_TRUE(bias);
  EXPECT_EQ(bias->token, 13);
  EXPECT_EQ(bias->bias, -2.5f);
  EXPECT_EQ(parseLogitBias("1=-inf")->bias, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(parseLogitBias("1=inf").error().message,
            "'1=inf' is not a bias for a token; write ID=B such as 13=-2.5, or 13=-inf to ban it");
  for (const char *bad :
       {"", "=", "1", "1=", "=1", "-1=2", "1=x", "1=inf", "1=nan", "1.5=2", "1=2 "})
    EXPECT_FALSE(parseLogitBias(bad)) << bad;
}

} // namespace
