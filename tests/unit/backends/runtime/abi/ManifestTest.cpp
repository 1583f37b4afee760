#include "backends/runtime/abi/Manifest.h"
#include "backends/cpu/features/Cpu.h"
#include "backends/runtime/abi/ManifestKeys.h"
#include "backends/runtime/support/Report.h"
#include "tests/unit/backends/runtime/FakeProgram.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace mica::rt;
using namespace mica::test;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

namespace {
/// The error of a manifest after `change`.
template <typename Change> std::string errorAfter(Change change) {
  json manifest = json::parse(fakeManifest());
  change(manifest);
  auto parsed = parseManifest(manifest.dump());
  return parsed ? "no error" : parsed.error().message;
}

TEST(Manifest, ReadsEverything) {
  auto m = parseManifest(fakeManifest(R"("avx2", "fma")"));
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->name, "fake");
  EXPECT_EQ(m->vocab, 32);
  EXPECT_EQ(m->maxSeq, 20);
  EXPECT_EQ(m->maxPositions, 1000);
  EXPECT_EQ(m->cpu, "fake-cpu");
  EXPECT_THAT(m->features, ElementsAre("avx2", "fma"));
  using enum mica::EntryRole;
  EXPECT_THAT(m->arguments, ElementsAre(Logits, Positions, Cache, Weights, LogitIndices, Tokens,
                                        Cache, Sequences, Scratch));
  ASSERT_EQ(m->caches.size(), 2u);
  EXPECT_EQ(m->weights, mica::Precision::F32);
  EXPECT_EQ(m->kv, mica::Precision::F32);
  EXPECT_EQ(m->caches[1].element, mica::Precision::BF16);
  EXPECT_THAT(m->caches[1].shape, ElementsAre(3, -1, -2, 8));
  EXPECT_EQ(m->caches[1].bytesPerToken, 12u);
  EXPECT_EQ(m->caches[1].elementBytes(), 2u);
  EXPECT_EQ(m->scratchBytesPerRow, 256u);
  EXPECT_EQ(m->scratchBytesPerOutput, 64u);
  EXPECT_EQ(m->scratchBytesFixed, 1024u);
  EXPECT_EQ(m->weightBytes, 64u);
  EXPECT_EQ(m->parameters, 16u);
  EXPECT_EQ(m->batchInvariantRows, 6);
  EXPECT_FALSE(m->dependsOnRole);
  EXPECT_EQ(m->bos, 1);
  EXPECT_THAT(m->eos, ElementsAre(2));
  EXPECT_EQ(m->generation.topK, 7);
  EXPECT_EQ(m->generation.topP, std::nullopt);
  EXPECT_EQ(m->cost.flopsPerToken, 2000);
  EXPECT_EQ(m->cost.flopsPerLogits, 500);
}

TEST(Manifest, StatesOfFixedSizeHaveSlots) {
  json manifest = json::parse(fakeManifest());
  manifest["caches"][1].update(
      {{"shape", {3, -1, 8, 5}}, {"bytes_per_token", 0}, {"window", 4}, {"slots", 8}});
  auto m = parseManifest(manifest.dump());
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(positionsOfCache(*m, m->caches[1], 1000), 8) << "whatever the rows of a call";
  EXPECT_EQ(stateBytes(m->caches[0]), 0u);
  EXPECT_EQ(stateBytesPerSequence(*m), 3u * 8 * 5 * 2);
  EXPECT_EQ(cacheBytesPerSequence(*m, 1), cacheBytesPerToken(*m) * 20 + 3u * 8 * 5 * 2);
  auto errorOf = [&](int64_t slots, int64_t window) {
    return errorAfter(
        [&](json &wrong) { wrong["caches"][1].update({{"window", window}, {"slots", slots}}); });
  };
  EXPECT_EQ(errorOf(4, 4), "no error");
  EXPECT_THAT(errorOf(3, 4), HasSubstr("'slots' of a state are fewer than its window"));
}

TEST(Manifest, RecurrentStatesHaveMatrices) {
  auto errorOf = [](const json &changed) {
    return errorAfter([&](json &m) {
      m["caches"][0].update({{"shape", {3, -1, 2, 60}},
                             {"bytes_per_token", 0},
                             {"window", 4},
                             {"slots", 8},
                             {"matrix", 6},
                             {"chunk", 4}});
      m["caches"][0].update(changed);
    });
  };
  EXPECT_EQ(errorOf({{"matrix", 26}}), "no error");
  EXPECT_THAT(errorOf({{"matrix", 27}}), HasSubstr("'matrix' does not fit twice in a head"));
  EXPECT_THAT(errorOf({{"matrix", 0}}), HasSubstr("'matrix' is not an integer from 1"));
  EXPECT_THAT(errorOf({{"shape", {3, -1, 120}}}), HasSubstr("'matrix' does not fit"));
  EXPECT_THAT(errorOf({{"chunk", 5}}), HasSubstr("'chunk' of a state takes more than half"));
}

TEST(Manifest, OptionalKeysMayBeAbsentOrNull) {
  EXPECT_EQ(errorAfter([](json &m) {
              for (const char *key :
                   {"bos", "eos", "generation", "cost", "weight_bytes", "config", "parameters",
                    "batch_invariant_rows", "rope_length_thresholds"})
                m.erase(key);
            }),
            "no error");
  EXPECT_EQ(errorAfter([](json &m) { m["bos"] = m["eos"] = m["generation"] = nullptr; }),
            "no error");
}

TEST(Manifest, RanksHaveTheBytesOfEach) {
  json manifest = json::parse(fakeManifest());
  EXPECT_EQ(parseManifest(manifest.dump())->ranks, 1);
  manifest.update({{"ranks", 2},
                   {"replicated", {{"norm", 64}}},
                   {"padding_bytes", 32},
                   {"unsharded_bytes", 512}});
  auto m = parseManifest(manifest.dump());
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->ranks, 2);
  EXPECT_THAT(m->replicated, ElementsAre(Pair("norm", 64u)));
  EXPECT_EQ(m->paddingBytes, 32u);
  EXPECT_EQ(m->unshardedBytes, 512u);
  manifest.erase("weight_bytes");
  EXPECT_THAT(parseManifest(manifest.dump()).error().message,
              HasSubstr("'weight_bytes' is missing, but there are several ranks"));
}

TEST(Manifest, KernelsHaveLocations) {
  json manifest = json::parse(fakeManifest());
  manifest["kernels"] = {{"linear_8x8", {"model.q_proj", "model.o_proj"}}};
  auto m = parseManifest(manifest.dump());
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_THAT(m->kernels["linear_8x8"], ElementsAre("model.q_proj", "model.o_proj"));
  EXPECT_THAT(errorAfter([](json &m) { m["kernels"] = 1; }),
              HasSubstr("'kernels' is not an object"));
  EXPECT_THAT(errorAfter([](json &m) { m["kernels"] = {{"k", "a"}}; }),
              HasSubstr("'kernels' is not an array"));
  EXPECT_THAT(errorAfter([](json &m) { m["kernels"] = {{"k", {1}}}; }),
              HasSubstr("'kernels' is not a string"));
}

/// The object of `manifest` that has `key`; of lists, the last one.
json &ownerOf(json &manifest, const ManifestKey &key) {
  if (!*key.object)
    return manifest;
  json &owner = manifest[key.object];
  return owner.is_array() ? owner.back() : owner;
}

/// A key is read if some value is an error that names it; each key has a value that is one.
TEST(Manifest, ReadsTheListedKeys) {
  std::vector<ManifestKey> keys(std::begin(kManifestKeys), std::end(kManifestKeys));
  for (const auto &setting : mica::kSamplingNumbers)
    keys.push_back({manifest_keys::generation.text, setting.name.data(), true});
  for (std::string_view name : {mica::kSamplingTopK.name, mica::kDoSample})
    keys.push_back({manifest_keys::generation.text, name.data(), true});
  json complete = json::parse(fakeManifestOfStates());
  complete["chat"] = {{"template", ""}, {"special_tokens", json::object()}};
  for (const ManifestKey &key : keys) {
    bool isRead = false;
    for (const json &wrong : {json(-5), json("text"), json::array({json::object()}),
                              json::object({{"x", json::object()}})}) {
      json manifest = complete;
      ownerOf(manifest, key)[key.text] = wrong;
      auto parsed = parseManifest(manifest.dump());
      isRead |= !parsed &&
                parsed.error().message.find(std::string("'") + key.text + "'") != std::string::npos;
    }
    EXPECT_EQ(isRead, key.isRead) << key.object << ": " << key.text;
  }
}

/// Of a multi-token prediction head.
TEST(Manifest, HasAWidthOfHiddenRowsIfTheCodeTakesThem) {
  EXPECT_THAT(errorAfter([](json &m) { m["hidden"] = 8; }),
              HasSubstr("'hidden' is given, but the code takes no hidden rows"));
  EXPECT_THAT(errorAfter([](json &m) { m["entry"]["arguments"].push_back("hidden"); }),
              HasSubstr("'hidden' is missing, but the code takes hidden rows"));
  json complete = json::parse(fakeManifest());
  complete["entry"]["arguments"].push_back("hidden");
  complete["hidden"] = 8;
  auto parsed = parseManifest(complete.dump());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(parsed->canDraft());
  EXPECT_EQ(parsed->hidden, 8);
}

TEST(Manifest, NamesALargerContextWhereThereIsOne) {
  auto m = parseManifest(fakeManifest());
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->largerContextHint(), " or compile with a larger --max-seq");
  m->maxSeq = m->maxPositions;
  EXPECT_EQ(m->largerContextHint(), "");
}

TEST(Manifest, NamesThePreservedFormatsOfItsWeights) {
  Manifest m;
  m.weights = mica::Precision::BF16;
  m.floatTypes = {{"f32", 9}};
  EXPECT_EQ(weightsText(m), "bf16");
  m.blockFormats = {{"q4_k", 3}, {"q5_k", 7}, {"q6_k", 7}};
  EXPECT_EQ(weightsText(m), "q5_k, q6_k, q4_k");
  EXPECT_EQ(otherWeights(m), std::nullopt) << "norms are not bf16";
  m.floatTypes["bf16"] = 1;
  EXPECT_EQ(otherWeights(m), mica::Precision::BF16);
  // Mica's own formats have the name of the option.
  m.weights = mica::Precision::Int4;
  m.blockFormats = {{"int4_g32", 7}, {"int6_g32", 1}};
  EXPECT_EQ(weightsText(m), "int4");
  EXPECT_EQ(otherWeights(m), std::nullopt);
}

TEST(Manifest, ErrorsNameTheKey) {
  for (const char *key : {"name", "weights", "kv", "vocab", "max_seq", "max_positions", "target",
                          "caches", "position_block", "scratch", "entry"})
    EXPECT_EQ(errorAfter([&](json &m) { m.erase(key); }),
              "the program's manifest: '" + std::string(key) + "' is missing; compile it again");
  EXPECT_THAT(errorAfter([](json &m) { m["max_positions"] = 19; }),
              HasSubstr("'max_positions' is not an integer from 20 to"));
  EXPECT_THAT(errorAfter([](json &m) { m["vocab"] = 0; }),
              HasSubstr("'vocab' is not an integer from 1 to"));
  EXPECT_THAT(errorAfter([](json &m) { m["vocab"] = 1.5; }),
              HasSubstr("'vocab' is not an integer"));
  EXPECT_THAT(errorAfter([](json &m) { m["vocab"] = ~uint64_t(0); }),
              HasSubstr("'vocab' is not an integer"));
  EXPECT_THAT(errorAfter([](json &m) { m["max_seq"] = "20"; }),
              HasSubstr("'max_seq' is not an integer"));
  EXPECT_THAT(errorAfter([](json &m) { m["bos"] = 32; }),
              HasSubstr("'bos' is not an integer from 0 to 31"));
  EXPECT_THAT(errorAfter([](json &m) { m["eos"] = 2; }), HasSubstr("'eos' is not an array"));
  EXPECT_THAT(errorAfter([](json &m) { m["name"] = 7; }), HasSubstr("'name' is not a string"));
  EXPECT_THAT(errorAfter([](json &m) { m["scratch"] = 7; }),
              HasSubstr("'scratch' is not an object"));
  EXPECT_EQ(errorAfter([](json &m) { m["depends_on_role"] = true; }), "no error");
  EXPECT_THAT(errorAfter([](json &m) { m["depends_on_role"] = "no"; }),
              HasSubstr("'depends_on_role' is not true or false"));
  EXPECT_THAT(errorAfter([](json &m) { m["batch_invariant_rows"] = 0; }),
              HasSubstr("'batch_invariant_rows' is not an integer from 1"));
  EXPECT_THAT(errorAfter([](json &m) { m["rope_length_thresholds"] = {0}; }),
              HasSubstr("'rope_length_thresholds' is not an integer from 1"));
  EXPECT_THAT(errorAfter([](json &m) { m["rope_length_thresholds"] = 64; }),
              HasSubstr("'rope_length_thresholds' is not an array"));
  EXPECT_THAT(errorAfter([](json &m) { m["parameters"] = -1; }), HasSubstr("'parameters'"));
  EXPECT_THAT(errorAfter([](json &m) { m["scratch"]["bytes_per_row"] = -1; }),
              HasSubstr("'bytes_per_row'"));
  for (const char *key : {"weights", "kv"})
    EXPECT_EQ(errorAfter([&](json &m) { m[key] = "f64"; }),
              "the program's manifest: '" + std::string(key) +
                  "' names the unknown precision 'f64'; compile it again");
  EXPECT_THAT(errorAfter([](json &m) { m["caches"][0]["element"] = "f64"; }),
              HasSubstr("'element' names the unknown precision 'f64'"));
  EXPECT_THAT(errorAfter([](json &m) { m["caches"][0]["element"] = "int4"; }),
              HasSubstr("'element' of a cache is int4, which caches never have"));
  EXPECT_THAT(errorAfter([](json &m) { m["caches"][0]["shape"][0] = -3; }),
              HasSubstr("'shape' is not an integer"));
  EXPECT_EQ(errorAfter([](json &m) { m["caches"][0]["window"] = 1; }), "no error");
  EXPECT_THAT(errorAfter([](json &m) { m["caches"][0]["window"] = 0; }),
              HasSubstr("'window' is not an integer from 1"));
  EXPECT_THAT(errorAfter([](json &m) { m["rewind_positions"] = -1; }),
              HasSubstr("'rewind_positions' is not an integer from 0"));
  EXPECT_THAT(errorAfter([](json &m) { m["generation"]["top_p"] = "x"; }),
              HasSubstr("'top_p' is not a number"));
  EXPECT_THAT(errorAfter([](json &m) { m["generation"]["temperature"] = 2e6; }),
              HasSubstr("'temperature' is not a number from 0 to 1e+06"));
  EXPECT_THAT(errorAfter([](json &m) { m["generation"]["top_k"] = -1; }),
              HasSubstr("'top_k' is not an integer from 0"));
  EXPECT_THAT(errorAfter([](json &m) { m["generation"]["do_sample"] = 1; }),
              HasSubstr("'do_sample' is not true or false"));
  EXPECT_EQ(errorAfter([](json &m) { m["generation"]["do_sample"] = nullptr; }), "no error");
  EXPECT_THAT(errorAfter([](json &m) { m = json::array(); }),
              HasSubstr("'manifest' is not an object"));
  EXPECT_THAT(parseManifest("{").error().message, HasSubstr("is not JSON"));
  EXPECT_THAT(parseManifest(std::string(100000, '[')).error().message, HasSubstr("is not JSON"));
}

TEST(Manifest, ChecksTheArgumentsOfTheCode) {
  auto errorOf = [](auto change) {
    return errorAfter([&](json &m) { change(m["entry"], m["entry"]["arguments"]); });
  };
  EXPECT_EQ(errorOf([](json &, json &roles) { roles.push_back("pages"); }),
            "the program's manifest: 'arguments' names the unknown role 'pages'; compile it again");
  EXPECT_EQ(errorOf([](json &, json &roles) { roles.push_back("tokens"); }),
            "the program's manifest: 'arguments' names the role 'tokens' twice; compile it again");
  EXPECT_EQ(errorOf([](json &, json &roles) { roles.erase(4); }),
            "the program's manifest: 'arguments' lacks the role 'logit_indices'; compile it again");
  EXPECT_EQ(errorOf([](json &, json &roles) { roles.push_back("cache"); }),
            "the program's manifest: 'arguments' names 3 caches, but 'caches' has 2; compile it "
            "again");
  EXPECT_EQ(errorOf([](json &entry, json &) { entry["abi"] = 2; }),
            "the program's manifest: 'abi' is 2, expected 1; compile it again");
  EXPECT_THAT(errorOf([](json &entry, json &) { entry.erase("abi"); }),
              HasSubstr("'abi' is missing"));
  EXPECT_THAT(errorOf([](json &entry, json &) { entry.erase("arguments"); }),
              HasSubstr("'arguments' is missing"));
  EXPECT_THAT(errorOf([](json &, json &roles) { roles = "tokens"; }),
              HasSubstr("'arguments' is not an array"));
  EXPECT_THAT(errorOf([](json &, json &roles) { roles[0] = 7; }),
              HasSubstr("'arguments' is not a string"));
  EXPECT_THAT(errorOf([](json &entry, json &) { entry = 7; }),
              HasSubstr("'entry' is not an object"));
}

/// Code may take lengths without a threshold, and then ignores them.
TEST(Manifest, ListsThresholdsOfRope) {
  json manifest = json::parse(fakeManifest());
  EXPECT_FALSE(parseManifest(manifest.dump())->takesLengths());
  manifest["entry"]["arguments"].push_back("lengths");
  EXPECT_TRUE(parseManifest(manifest.dump())->takesLengths());
  manifest["rope_length_thresholds"] = {128, 64};
  auto m = parseManifest(manifest.dump());
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->ropeLengthThresholds, (std::vector<int64_t>{64, 128}));
  EXPECT_FALSE(m->ropeThetaGrows);
  manifest["rope_theta_grows"] = true;
  EXPECT_TRUE(parseManifest(manifest.dump())->ropeThetaGrows);
}

TEST(Manifest, CountsTensorsByType) {
  json manifest = json::parse(fakeManifest());
  EXPECT_THAT(parseManifest(manifest.dump())->blockFormats, IsEmpty());
  manifest["block_formats"] = {{"q4_k", 24}, {"q6_k", 1}};
  manifest["float_types"] = {{"f32", 9}};
  auto m = parseManifest(manifest.dump());
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_THAT(m->blockFormats, ElementsAre(Pair("q4_k", 24), Pair("q6_k", 1)));
  EXPECT_THAT(m->floatTypes, ElementsAre(Pair("f32", 9)));
  EXPECT_THAT(errorAfter([](json &m) { m["block_formats"] = {"q4_k x 24"}; }),
              HasSubstr("'block_formats' is not an object"));
  EXPECT_THAT(errorAfter([](json &m) { m["block_formats"] = {{"q4_k", 0}}; }),
              HasSubstr("'block_formats'"));
  EXPECT_THAT(errorAfter([](json &m) { m["float_types"] = {{"f32", "9"}}; }),
              HasSubstr("'float_types'"));
}

TEST(Manifest, CarriesTheChatTemplate) {
  json manifest = json::parse(fakeManifest());
  manifest["chat"] = {{"template", "{{ bos_token }}"}, {"special_tokens", {{"bos_token", "<s>"}}}};
  auto m = parseManifest(manifest.dump());
  ASSERT_TRUE(m) << m.error().message;
  ASSERT_TRUE(m->chat);
  EXPECT_EQ(m->chat->chatTemplate, "{{ bos_token }}");
  EXPECT_THAT(m->chat->specialTokens, ElementsAre(Pair("bos_token", "<s>")));
  EXPECT_FALSE(m->chat->toolTemplate);
  manifest["chat"]["tool_template"] = "{{ tools }}";
  EXPECT_EQ(parseManifest(manifest.dump())->chat->toolTemplate, "{{ tools }}");
  manifest["chat"]["tool_template"] = 1;
  EXPECT_THAT(parseManifest(manifest.dump()).error().message,
              HasSubstr("'tool_template' is not a string"));
  EXPECT_FALSE(parseManifest(fakeManifest())->chat);
  EXPECT_THAT(errorAfter([](json &m) { m["chat"] = 1; }), HasSubstr("'chat' is not an object"));
  EXPECT_THAT(errorAfter([](json &m) { m["chat"] = {{"template", 1}}; }),
              HasSubstr("'template' is not a string"));
  EXPECT_THAT(errorAfter([](json &m) { m["chat"] = {{"template", ""}}; }),
              HasSubstr("'special_tokens' is missing"));
}

TEST(Cpu, DetectsBaselineFeatures) {
  for (const char *name : {"sse", "sse2", "cx8", "cmov", "fxsr", "64bit"})
    EXPECT_TRUE(cpuHas(name)) << name;
  EXPECT_TRUE(knownCpuFeature("avx512bf16"));
  EXPECT_FALSE(knownCpuFeature("+avx2"));
  EXPECT_FALSE(cpuHas("no-such-feature"));
  EXPECT_FALSE(cpuName().empty());
}

TEST(Cpu, AgreesWithTheCompiler) {
  EXPECT_EQ(cpuHas("avx"), bool(__builtin_cpu_supports("avx")));
  EXPECT_EQ(cpuHas("avx2"), bool(__builtin_cpu_supports("avx2")));
  EXPECT_EQ(cpuHas("fma"), bool(__builtin_cpu_supports("fma")));
  EXPECT_EQ(cpuHas("avx512f"), bool(__builtin_cpu_supports("avx512f")));
  EXPECT_EQ(cpuHas("avx512vl"), bool(__builtin_cpu_supports("avx512vl")));
  EXPECT_EQ(cpuHas("avx512vnni"), bool(__builtin_cpu_supports("avx512vnni")));
  EXPECT_EQ(cpuHas("avx512bf16"), bool(__builtin_cpu_supports("avx512bf16")));
  EXPECT_EQ(cpuHas("popcnt"), bool(__builtin_cpu_supports("popcnt")));
  EXPECT_EQ(cpuHas("bmi2"), bool(__builtin_cpu_supports("bmi2")));
}

TEST(Cpu, NamesMissingFeatures) {
  EXPECT_TRUE(checkCpu("any", {"sse2", "64bit"}));
  Status refused = checkCpu("znver9", {"sse2", "avx1024", "tea"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("compiled for znver9, but this machine ("));
  EXPECT_THAT(refused.error().message, HasSubstr(") lacks avx1024, tea; compile it with --target"));
}

TEST(Report, ControlCharactersAreEscaped) {
  EXPECT_EQ(printable("a\nb\tc\x1b[31m\x7f"), "a\\nb\\tc\\x1b[31m\\x7f");
  EXPECT_EQ(printable("f\xc3\xbcr"), "f\xc3\xbcr");
}
TEST(Manifest, ChunksOfPromptsFitTheirBuffers) {
  Manifest manifest;
  manifest.vocab = 128256;
  auto chunk = [&](uint64_t row, uint64_t fixed, bool allLogits = false) {
    manifest.scratchBytesPerRow = row;
    manifest.scratchBytesFixed = fixed;
    return prefillChunkSize({}, manifest, allLogits);
  };
  EXPECT_EQ(chunk(49152, 5 << 20), 512);
  EXPECT_EQ(chunk(111488, 5 << 20), 256) << "Llama 3.1 8B";
  EXPECT_EQ(chunk(49152, 5 << 20, true), 64) << "logits of 128256 numbers for every row";
  EXPECT_EQ(chunk((40 << 20) / 512, 0), 512);
  EXPECT_EQ(chunk((40 << 20) / 512, 1), 256);
  EXPECT_EQ(chunk(1 << 30, 0), 16);
  EXPECT_EQ(prefillChunkSize(7, manifest), 7);
  manifest.scratchBytesPerRow = 1000;
  manifest.scratchBytesPerOutput = 100;
  manifest.scratchBytesFixed = 10;
  EXPECT_EQ(bytesOfCall(manifest, 3, 2), 10u + 3 * 1000 + 2 * (100 + 128256 * 4));
}

} // namespace
