#include "frontend/config/GenerationReader.h"

#include "frontend/support/Json.h"
#include "tests/unit/frontend/TestFolder.h"

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

/// Reads `text` over defaults that come from config.json: bos 1, eos 2.
std::string read(llvm::StringRef text, GenerationDefaults &defaults,
                 std::vector<IgnoredKey> &ignored) {
  defaults.bos = 1;
  defaults.eos = {2};
  llvm::json::Value value = llvm::cantFail(parseJson(text, "g.json"));
  return messageOf(readGeneration(JsonKeys(*value.getAsObject(), "g.json"), defaults, ignored));
}

std::string problemOf(llvm::StringRef text) {
  GenerationDefaults defaults;
  std::vector<IgnoredKey> ignored;
  return read(text, defaults, ignored);
}

TEST(GenerationReader, ReadsSupportedSamplingSettings) {
  GenerationDefaults g;
  std::vector<IgnoredKey> ignored;
  EXPECT_EQ(read(R"({"temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0, "do_sample": true,
                     "repetition_penalty": 1.1, "bos_token_id": 5, "eos_token_id": [9, 8],
                     "transformers_version": "5", "max_length": 20})",
                 g, ignored),
            "");
  EXPECT_EQ(g.temperature, 0.6);
  EXPECT_EQ(g.topK, 20);
  EXPECT_EQ(g.topP, 0.95);
  EXPECT_EQ(g.minP, 0.0);
  EXPECT_EQ(g.doSample, true);
  EXPECT_EQ(g.repetitionPenalty, 1.1);
  EXPECT_EQ(g.bos, 5);
  EXPECT_THAT(g.eos, testing::ElementsAre(9, 8));
  ASSERT_EQ(ignored.size(), 2u);
  EXPECT_EQ(ignored[0].key, "max_length");
}

TEST(GenerationReader, ReportsUnsupportedSampling) {
  GenerationDefaults g;
  std::vector<IgnoredKey> ignored;
  EXPECT_EQ(read(R"({"penalty_alpha": 0.6, "num_beams": 1, "epsilon_cutoff": 0.0, "top_h": null,
                     "suppress_tokens": [], "sequence_bias": {}, "no_repeat_ngram_size": 3,
                     "bad_words_ids": [[1]], "max_length": 9, "do_sample": true, "typical_p": 0.9})",
                 g, ignored),
            "");
  EXPECT_EQ(g.typicalP, 0.9);
  std::vector<std::string> missed;
  for (const IgnoredKey &key : ignored)
    if (key.missed)
      missed.push_back(key.key);
  EXPECT_THAT(missed,
              testing::ElementsAre("bad_words_ids", "no_repeat_ngram_size", "penalty_alpha"));
}

TEST(GenerationReader, GivesReasonsForOtherKeys) {
  GenerationDefaults g;
  std::vector<IgnoredKey> ignored;
  EXPECT_EQ(read(R"({"pad_token_id": 0, "transformers_version": "5", "max_length": 9,
                     "num_beams": 1, "use_cache": true, "magic": 1})",
                 g, ignored),
            "");
  std::vector<std::string> reasons;
  for (const IgnoredKey &key : ignored)
    reasons.push_back(key.key + " " + key.reason);
  EXPECT_THAT(reasons,
              testing::UnorderedElementsAre(
                  "pad_token_id batches are not padded",
                  "transformers_version describes who wrote the file or how to load it in Python",
                  "max_length programs limit the number of tokens with -n N",
                  "num_beams not a supported sampling setting",
                  "use_cache the cache is always used", "magic not a supported sampling setting"));
}

TEST(GenerationReader, EachNumberHasItsOwnNeutralValue) {
  GenerationDefaults g;
  std::vector<IgnoredKey> ignored;
  EXPECT_EQ(read(R"({"forced_bos_token_id": 1, "guidance_scale": 1.0, "no_repeat_ngram_size": 1,
                     "num_beams": 1, "presence_penalty": 1.0, "frequency_penalty": 0})",
                 g, ignored),
            "");
  std::vector<std::string> missed;
  for (const IgnoredKey &key : ignored)
    if (key.missed)
      missed.push_back(key.key + " " + key.reason);
  const std::string changes = " changes which tokens are chosen, but is ";
  EXPECT_THAT(missed, testing::ElementsAre("forced_bos_token_id" + changes + "not supported",
                                           "no_repeat_ngram_size" + changes + "not supported",
                                           "presence_penalty" + changes +
                                               "only supported as --presence-penalty"));
}

TEST(GenerationReader, UsesDefaultsOfTransformersIfSamplingIsEnabled) {
  GenerationDefaults g;
  std::vector<IgnoredKey> ignored;
  EXPECT_EQ(read(R"({"do_sample": true, "top_p": 0.9})", g, ignored), "");
  EXPECT_EQ(g.temperature, 1.0);
  EXPECT_EQ(g.topK, 50);
  EXPECT_EQ(g.topP, 0.9);
  EXPECT_EQ(g.minP, std::nullopt);
  EXPECT_THAT(ignored, testing::IsEmpty());
}

TEST(GenerationReader, NumbersAloneDoNotMakeItSample) {
  GenerationDefaults g;
  std::vector<IgnoredKey> ignored;
  EXPECT_EQ(read(R"({"top_k": 20, "repetition_penalty": 1.1})", g, ignored), "");
  EXPECT_EQ(g.doSample, false);
  EXPECT_EQ(g.repetitionPenalty, 1.1);
  ASSERT_EQ(ignored.size(), 1u);
  EXPECT_TRUE(ignored[0].missed);
  EXPECT_EQ(ignored[0].key + " " + ignored[0].reason,
            "top_k has no effect without \"do_sample\": true; like transformers, the program then "
            "takes the most likely token");

  GenerationDefaults said;
  EXPECT_EQ(read(R"({"do_sample": false, "top_k": 20})", said, ignored), "");
  EXPECT_EQ(ignored.size(), 1u) << "the file says it itself";

  GenerationDefaults silent;
  EXPECT_EQ(read(R"({"repetition_penalty": 1.1})", silent, ignored), "");
  EXPECT_EQ(silent.doSample, std::nullopt);
}

TEST(GenerationReader, KeepsUnnamedSettings) {
  GenerationDefaults g;
  std::vector<IgnoredKey> ignored;
  EXPECT_EQ(read(R"({"eos_token_id": null, "temperature": null})", g, ignored), "");
  EXPECT_EQ(g.bos, 1);
  EXPECT_THAT(g.eos, testing::ElementsAre(2));
  EXPECT_EQ(g.temperature, std::nullopt);
}

TEST(GenerationReader, RefusesImpossibleValues) {
  EXPECT_EQ(problemOf(R"({"temperature": -1})"),
            "g.json: has \"temperature\": -1, expected a number from 0 to 1000000; correct it");
  EXPECT_THAT(problemOf(R"({"typical_p": 0})"), HasSubstr("\"typical_p\": 0, expected a number"));
  EXPECT_THAT(problemOf(R"({"top_p": 1.5})"), HasSubstr("\"top_p\": 1.5"));
  EXPECT_THAT(problemOf(R"({"top_k": 2.5})"), HasSubstr("\"top_k\": 2.5, expected an integer"));
  EXPECT_THAT(problemOf(R"({"do_sample": 1})"),
              HasSubstr("has \"do_sample\": 1, expected true or false"));
  EXPECT_THAT(problemOf(R"({"eos_token_id": ["a"]})"), HasSubstr("\"eos_token_id\": \"a\""));
}

} // namespace
