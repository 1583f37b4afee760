// The launcher with a program attached, started as by a user.
#include "backends/runtime/engine/Sampler.h"
#include "backends/runtime/program/ProgramFile.h"
#include "tests/unit/backends/runtime/Shell.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace mica;
using namespace mica::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

namespace {
std::string joined(const rt::Tokens &tokens) {
  std::string text;
  for (int32_t token : tokens)
    text += (text.empty() ? "" : " ") + std::to_string(token);
  return text + "\n";
}

#ifndef __has_feature // Clang has it, older GCCs do not.
#define __has_feature(x) 0
#endif

/// The reason why programs cannot be run on an emulated older CPU; empty if they can.
std::string whyNoEmulator() {
#if __has_feature(address_sanitizer)
  return "the address sanitizer does not run under qemu: older CPUs are not tested";
#endif
  if (std::system("command -v qemu-x86_64 >/dev/null") != 0)
    return "no qemu-x86_64 on this machine: older CPUs are not tested";
  return "";
}

class LauncherTest : public testing::Test {
protected:
  void SetUp() override { writeFakeProgram(program, MICA_LAUNCHER, fakeManifest()); }

  Outcome shell(const std::string &command) { return runShell(folder, command); }
  Outcome run(const std::string &arguments) { return shell(program + " " + arguments); }

  void expectUsageError(const std::string &arguments, const std::string &words) {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_THAT(outcome.err, StartsWith("mica: error: " + program + ": ")) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }

  void expectError(const Outcome &outcome, const std::string &words) {
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, StartsWith("mica: error: "));
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }

  /// The output of `bench --profile` for one generation with two threads.
  nlohmann::json profileOf(const std::string &options) {
    Outcome outcome = run("bench --prompt 0 --repeat 1 --threads 2 --profile --json --peak-gb 1 "
                          "--peak-gflop 2 " +
                          options);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["results"][0]["profile"];
  }

  TemporaryFolder folder;
  std::string program = folder.file("program");
};

TEST_F(LauncherTest, PrintsTokens) {
  Outcome outcome = run("--tokens 1,5,3 -n 8 --temperature 0 --print-tokens --ignore-eos");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, joined(fakeContinuation({1, 5, 3}, 8)));
  EXPECT_EQ(outcome.err, "");
}

TEST_F(LauncherTest, ThreadsAndChunksChangeNothing) {
  std::string expected = joined(fakeContinuation({1, 5, 3, 4}, 8));
  for (const char *options : {"--threads 1", "--threads 2", "--threads 4", "--prefill-chunk 1",
                              "--prefill-chunk 3", "--huge-pages"})
    EXPECT_EQ(run(std::string("--tokens 1,5,3,4 -n 8 --temperature 0 --ignore-eos ") + options).out,
              expected);
}

TEST_F(LauncherTest, BeginsWithBosWithoutAPrompt) {
  EXPECT_EQ(run("-n 3 --temperature 0 --ignore-eos").out, joined(fakeContinuation({fakeBos}, 3)));
}

TEST_F(LauncherTest, OptionsOfLlamaCppAreAliases) {
  EXPECT_EQ(run("--tokens 1,5 --n-predict 3 --temp 0 -t 2 --repeat-penalty 1 --ignore-eos").out,
            run("--tokens 1,5 -n 3 --temperature 0 --threads 2 --ignore-eos").out);
}

TEST_F(LauncherTest, BatchGivesOneLinePerSequence) {
  Outcome outcome =
      run("--tokens 1,9,4 --tokens 7 -n 4 --temperature 0 --ignore-eos --print-tokens");
  EXPECT_EQ(outcome.out, joined(fakeContinuation({1, 9, 4}, 4)) + joined(fakeContinuation({7}, 4)));
}

TEST_F(LauncherTest, FullContextIsANote) {
  Outcome outcome =
      run("--tokens 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1 -n 100 --temperature 0 --ignore-eos");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, joined(fakeContinuation(rt::Tokens(18, 1), 3)));
  EXPECT_EQ(outcome.err, "mica: note: the context (20 positions) is full; generation stopped\n");
}

TEST_F(LauncherTest, WritesLogitsInTheOrderOfSequences) {
  // The first sequence ends immediately with an end token, so the rows of the second one move up.
  Outcome outcome =
      run("--tokens 1,26 --tokens 4,5,6 -n 3 --temperature 0 --logits " + folder.file("l.npy"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  ASSERT_EQ(fakeNext({1, 26}), 28);
  rt::Tokens first = fakeContinuation({1, 26}, 3), second = fakeContinuation({4, 5, 6}, 3);
  std::string npy = contents(folder.file("l.npy"));
  EXPECT_THAT(npy, HasSubstr("'shape': (9, 32)"));
  ASSERT_EQ(npy.size(), 128u + 9 * 32 * 4);
  std::vector<int32_t> tops;
  for (int row = 0; row < 9; ++row) {
    const float *logits = reinterpret_cast<const float *>(npy.data() + 128) + row * 32;
    tops.push_back(*rt::argmax(std::span(logits, 32)));
  }
  EXPECT_THAT(tops, ElementsAre(fakeNext({1}), first[0], first[1], first[2], fakeNext({4}),
                                fakeNext({4, 5}), second[0], second[1], second[2]));
}

TEST_F(LauncherTest, JsonIsComplete) {
  Outcome outcome = run("--tokens 27 --tokens 5 -n 3 --temperature 0 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["sequences"][0]["finish"], "stop");
  EXPECT_EQ(json["sequences"][0]["tokens"], (rt::Tokens{fakeEos}));
  EXPECT_EQ(json["sequences"][1]["finish"], "length");
  EXPECT_EQ(json["sequences"][1]["tokens"], fakeContinuation({5}, 3));
  EXPECT_EQ(json["prefill"]["tokens"], 2);
}

TEST_F(LauncherTest, JsonHasLogprobsOnDemand) {
  Outcome outcome = run("--tokens 5 -n 2 --temperature 0 --json --logprobs 3");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  auto sequence = nlohmann::json::parse(outcome.out)["sequences"][0];
  ASSERT_EQ(sequence["logprobs"].size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    auto entry = sequence["logprobs"][i];
    EXPECT_EQ(entry["token"], sequence["tokens"][i]);
    ASSERT_EQ(entry["top"].size(), 3u);
    EXPECT_EQ(entry["top"][0]["token"], entry["token"]);
    EXPECT_EQ(entry["top"][0]["logprob"], entry["logprob"]);
    EXPECT_LE(double(entry["top"][1]["logprob"]), double(entry["logprob"]));
  }
  EXPECT_FALSE(nlohmann::json::parse(run("--tokens 5 -n 2 --json").out)["sequences"][0].contains(
      "logprobs"));
  expectUsageError("--tokens 5 --logprobs 3", "--logprobs requires --json");
}

TEST_F(LauncherTest, DryEndsARepetition) {
  std::string options = "--tokens 3,4,5,3,4 -n 1 --temperature 0 --ignore-eos --logit-bias 5=1000 ";
  EXPECT_EQ(run(options).out, "5\n");
  EXPECT_NE(run(options + "--dry-multiplier 10000 --dry-penalty-last-n -1").out, "5\n");
  EXPECT_EQ(run(options + "--dry-multiplier 10000 --dry-penalty-last-n 3").out, "5\n");
}

TEST_F(LauncherTest, SeedMakesSamplingRepeatable) {
  std::string options = "--tokens 3 -n 12 --temperature 3 --top-k 0 --top-p 1 --ignore-eos --seed ";
  EXPECT_EQ(run(options + "7").out, run(options + "7").out);
  EXPECT_NE(run(options + "7").out, run(options + "8").out);
}

TEST_F(LauncherTest, LookupIsCountedAndChangesNothing) {
  std::string options = "--tokens 3,3,3 -n 15 --temperature 0 --ignore-eos --json";
  auto plain = nlohmann::json::parse(run(options).out);
  Outcome outcome = run(options + " --lookup 5 -v");
  auto drafted = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(drafted["sequences"], plain["sequences"]);
  EXPECT_FALSE(plain.contains("lookup"));
  EXPECT_EQ(int64_t(drafted["lookup"]["accepted"]) + int64_t(drafted["lookup"]["calls"]), 14);
  EXPECT_THAT(outcome.err, HasSubstr("drafted tokens were accepted"));
}

TEST_F(LauncherTest, BenchOfATextThatRepeatsItself) {
  writeFakeProgram(program, MICA_LAUNCHER, fakeManifest("", fakeVocab, 200));
  Outcome outcome = run("bench --prompt 0 --gen 100 --lookup 5 --repeat 2 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  auto results = nlohmann::json::parse(outcome.out)["results"];
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1]["test"], "tg100@l5");
  const auto &lookup = results[1]["lookup"];
  EXPECT_GT(lookup["accepted"], 50);
  EXPECT_EQ(int64_t(lookup["accepted"]) + int64_t(lookup["calls"]), 100);
}

TEST_F(LauncherTest, BenchOfATextThatIsGiven) {
  writeFakeProgram(program, MICA_LAUNCHER, fakeManifest("", fakeVocab, 200));
  // A text of ids 3 to 18, repeated after the prompt; 31 occurs in neither.
  std::string said = "3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18", text = said + ",31," + said;
  Outcome outcome =
      run("bench --prompt 0 --depth 17 --gen 15 --lookup 5 --repeat 1 --json --tokens " + text);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  auto results = nlohmann::json::parse(outcome.out)["results"];
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1]["test"], "tg15@d17@l5");
  const auto &lookup = results[1]["lookup"];
  EXPECT_GT(lookup["accepted"], 8);
  EXPECT_EQ(int64_t(lookup["accepted"]) + int64_t(lookup["calls"]), 15);
  expectError(run("bench --gen 5 --tokens 1,2,3,4,5,6,7,8"), "add --lookup");
  expectError(run("bench --gen 5 --lookup 2 --tokens 1,2,3,4,5,6"),
              "the test tg5@l2 needs 7 ids, but --tokens has 6; choose a smaller --depth or --gen");
  expectError(run("bench --gen 2 --lookup 2 --tokens 1,2,3,32"),
              "token 32 of --tokens is not below the vocabulary's 32");
  EXPECT_EQ(run("bench --lookup 2 --tokens 1,x").status, 2);
}

TEST_F(LauncherTest, LookupRequiresBatchInvariantRows) {
  std::string manifest = fakeManifest();
  std::string entry = "\"batch_invariant_rows\": 6,";
  manifest.replace(manifest.find(entry), entry.size(), "");
  writeFakeProgram(program, MICA_LAUNCHER, manifest);
  EXPECT_EQ(run("--tokens 1 -n 2").status, 0);
  expectError(run("--tokens 1 -n 2 --lookup 3"), "lookup: the program computes one row at a time");
}

TEST_F(LauncherTest, NumbersAreDecimal) {
  std::string rest = " --tokens 1,5 --temperature 0 --ignore-eos";
  EXPECT_EQ(run("-n 010" + rest).out, joined(fakeContinuation({1, 5}, 10)));
  EXPECT_EQ(run("-n 3 --seed 18446744073709551615" + rest).status, 0);
  EXPECT_EQ(run("--threads 01 --huge-pages info").status, 0) << "they go with every command";
}

TEST_F(LauncherTest, AFullDiskIsAnErrorOfStdout) {
  for (const char *arguments :
       {"--help", "--version", "bench --help", "info", "info --licenses", "--tokens 1 -n 2",
        "--tokens 1 -n 2 --json", "bench --prompt 2 --gen 2 --repeat 1"})
    expectError(
        run(std::string(arguments) + " > /dev/full"),
        "cannot write to the standard output: No space left on device; redirect it elsewhere");
}

TEST_F(LauncherTest, RefusesWrongUsage) {
  expectUsageError("--no-such-option", "--no-such-option");
  expectUsageError("info surplus", "unexpected argument 'surplus'");
  expectUsageError("--tokens 1,x", "'x' is not a token id");
  expectUsageError("--tokens 1,,2", "'' is not a token id");
  expectUsageError("--tokens -1", "'-1' is not a token id");
  expectUsageError("--tokens 99999999999", "is not a token id");
  expectUsageError("-p a -f b", " exclude each other; see ");
  expectUsageError("-n 1 -n 2", "--n-predict is given more than once; see ");
  expectUsageError("-n -3", "-n");
  expectUsageError("-n 1.5", "-n");
  expectUsageError("-n", "-n");
  expectUsageError("--temperature nan", "'nan' is not a number from 0 to 1e+06");
  expectUsageError("--temperature 1e30", "'1e30' is not a number from 0 to 1e+06");
  expectUsageError("--repetition-penalty 1e-38", "'1e-38' is not a number from 1e-06 to 1e+06");
  expectUsageError("--temperature 0x1p3", "'0x1p3' is not a number");
  expectUsageError("--seed -1", "'-1' is not a whole number from 0");
  expectUsageError("--seed 18446744073709551616", "is not a whole number from 0");
  expectUsageError("-n 0x10", "'0x10' is not a whole number from 0 to 2147483647");
  expectUsageError("-n 2147483648", "'2147483648' is not a whole number from 0 to 2147483647");
  expectUsageError("info ''", "unexpected argument ''; see " + program + " info --help");
  expectUsageError("info a 'b\nc'", "unexpected arguments 'a', 'b\\nc'");
  expectUsageError("a b", "unexpected argument 'b'");
  expectUsageError("a -p b", "--prompt and PROMPT exclude each other");
  expectUsageError("a info", "PROMPT is an option for generating text, not for the command info");
  expectUsageError("bnech", "there is no command 'bnech' (write a prompt after -p); did you mean "
                            "'bench'? See");
  expectUsageError("-p a bench",
                   "--prompt is an option for generating text, not for the command bench");
  expectUsageError("--seed 1 info",
                   "--seed is an option for generating text, not for the command info");
  expectUsageError("--json score",
                   "--json is an option for generating text, not for the command score");
  expectUsageError("chat --top-k -1", "; see " + program + " chat --help");
  expectUsageError("--temperatur 0.2",
                   "unexpected argument '--temperatur'; did you mean '--temperature'? See " +
                       program + " --help");
  expectUsageError("bench --repaet 3", "did you mean '--repeat'? See " + program + " bench --help");
  expectUsageError("-temperature 1", "unexpected argument '-temperature'; did you mean "
                                     "'--temperature'?");
  expectUsageError("-ngl 99", "-ngl: there is no GPU backend; leave it out; see");
  expectUsageError("chat --n-gpu-layers 99", "--n-gpu-layers: there is no GPU backend");
  expectUsageError("-c 4096",
                   "-c: the context length is set when compiling (mica compile --max-seq");
  expectUsageError("-m model.gguf", "-m: the program contains its model; leave it out");
  expectUsageError("--temperature -1", "--temperature");
  expectUsageError("--top-p -0.1", "--top-p");
  expectUsageError("--typical-p 0", "--typical-p");
  expectUsageError("--top-p 1.01", "--top-p");
  expectUsageError("--top-k -1", "--top-k");
  expectUsageError("--min-p 2", "--min-p");
  expectUsageError("--repetition-penalty 0", "--repetition-penalty");
  expectUsageError("--threads 0", "--threads");
  expectUsageError("--prefill-chunk 0", "--prefill-chunk");
  expectUsageError("--dry-penalty-last-n -2", "'-2' is not a whole number from 0");
  expectUsageError("--mirostat 3", "'3' is not a whole number from 0 to 2");
  expectUsageError("--xtc-probability 1.1", "'1.1' is not a number from 0 to 1");
  expectUsageError("--seed x", "--seed");
  expectUsageError("--lookup -1", "'-1' is not a whole number from 0 to 31");
  expectUsageError("--lookup 32", "'32' is not a whole number from 0 to 31");
  expectUsageError("serve --mtp 32", "'32' is not a whole number from 0 to 31");
  expectUsageError("bench --lookup 32", "'32' is not a whole number from 0 to 31");
  expectUsageError("bench --repeat 0", "--repeat");
  expectUsageError("bench --batch 1025", "'1025' is not a whole number from 1 to 1024");
  expectUsageError("bench --peak-gb 0", "--peak-gb");
  expectUsageError("bench --peak-gflop x", "--peak-gflop");
  expectUsageError("score --prefill-chunk 0", "--prefill-chunk");
  expectUsageError("info --no", "--no");
}

TEST_F(LauncherTest, RefusesWrongInput) {
  expectError(run("--tokens 1,32"), "token 32 is not in the model's vocabulary (0 to 31)");
  expectError(run("--tokens 31 -n 1"), "not finite");
  expectError(
      run("-p hello"),
      "the program has no tokenizer; put the tokenizer's files into the model's folder and compile "
      "it again, or pass ids with --tokens");
  expectError(run("--tokens 1 --logits /nowhere/l.npy"),
              "/nowhere/l.npy: cannot be written (its folder does not exist); create it or "
              "choose another file for the logits");
  expectError(run("--tokens 1 --logits " + folder.file("")), "it does not name a file");
  expectError(run("bench --prompt 30"),
              "the test pp30 does not fit into the context of 20 positions");
  expectError(run("bench --gen 0"), "nothing to measure");
}

TEST_F(LauncherTest, ReplacesOnlyFilesOfTheKindThatItWrites) {
  std::string file = folder.file("f"), bench = "bench --gen 1 --repeat 1 --trace " + file,
              logits = "--tokens 1,2 -n 1 --logits " + file;
  const std::string foreign = "{\"weights\": [1, 2, 3]}";
  std::ofstream(file) << foreign;
  expectError(
      run(logits),
      file + ": cannot be written (it exists and is not a .npy file); remove it or choose another "
             "file for the logits");
  expectError(run(bench),
              file +
                  ": cannot be written (it exists and is not a trace of a program); remove it or "
                  "choose another file for the trace");
  EXPECT_EQ(contents(file), foreign);
  std::ofstream(file, std::ios::trunc).flush();
  EXPECT_EQ(run(logits).status, 0) << "an empty file is one to take";
  std::string written = contents(file);
  EXPECT_EQ(run(logits).status, 0) << "its own kind";
  EXPECT_EQ(contents(file), written);
  expectError(run(bench), "it exists and is not a trace of a program");
  EXPECT_EQ(contents(file), written);
  unlink(file.c_str());
  EXPECT_EQ(run(bench).status, 0);
  EXPECT_EQ(run(bench).status, 0) << "its own kind";
  expectError(run(logits), "it exists and is not a .npy file");
}

TEST_F(LauncherTest, FailedRunLeavesNoLogits) {
  expectError(run("--tokens 1,31 --logits " + folder.file("l.npy")), "not finite");
  EXPECT_THAT(folder.entries(), ElementsAre("program", "stderr", "stdout"));
}

TEST_F(LauncherTest, FullStandardOutputIsAnError) {
  expectError(shell(program + " --tokens 1 --temperature 0 >/dev/full"),
              "cannot write to the standard output");
}

TEST_F(LauncherTest, ClosedPipeEndsItQuietly) {
  // The status of the program itself: 128 + SIGPIPE, or 0 if the reader was slower.
  Outcome outcome =
      shell("{ " + program + " bench --prompt 0 --gen 2 --repeat 500; echo $? >&2; } | true");
  EXPECT_THAT(outcome.err, testing::AnyOf("141\n", "0\n"));
}

TEST_F(LauncherTest, HelpAndVersion) {
  EXPECT_THAT(run("--help").out, HasSubstr("--repetition-penalty"));
  EXPECT_THAT(run("bench --help").out, HasSubstr("--depth"));
  EXPECT_THAT(run("--version").out, StartsWith("mica "));
  EXPECT_EQ(run("--help").status, 0);
}

TEST_F(LauncherTest, BenchJson) {
  Outcome outcome =
      run("bench --prompt 4 --gen 3 --batch 1 --batch 2 --depth 5 --repeat 3 --threads 2 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["model"], "fake");
  EXPECT_EQ(json["weights"], "f32");
  EXPECT_EQ(json["threads"], 2);
  std::vector<std::string> names;
  for (const auto &result : json["results"]) {
    names.push_back(result["test"]);
    EXPECT_EQ(result["runs"].size(), 3u);
    double rate = result["tokens_per_s"];
    EXPECT_GT(rate, 0);
    // Of a prompt, only the last of 4 rows has logits.
    double flops = result["test"] == "pp4@d5" ? 2000 + 500 / 4.0 : 2500;
    EXPECT_NEAR(result["gflop_per_s"], flops * rate * 1e-9, 1e-9 * rate);
  }
  EXPECT_THAT(names, ElementsAre("pp4@d5", "tg3@d5", "tg3@b2@d5"));
  // Three steps of one sequence that attend to 6, 7 and 8 positions: 1000 bytes of weights, 16 per
  // position.
  const auto &single = json["results"][1];
  EXPECT_NEAR(single["gb_per_s"], double(single["tokens_per_s"]) * 1112e-9, 1e-6);
}

TEST_F(LauncherTest, BenchProfilesEachKernel) {
  auto profile = profileOf("--gen 3 --depth 5");
  EXPECT_EQ(profile["calls"], 3);
  ASSERT_EQ(profile["kernels"].size(), 1u);
  const auto &kernel = profile["kernels"][0];
  EXPECT_EQ(kernel["kernel"], "head");
  EXPECT_EQ(kernel["launches"], 3);
  // Steps that attend to 6, 7 and 8 positions.
  EXPECT_EQ(kernel["bytes"], 3 * 1000 + (6 + 7 + 8) * 10);
  EXPECT_EQ(kernel["flops"], 3 * 2000);
  EXPECT_EQ(profile["bytes_per_token"], 1070);
  double seconds = kernel["seconds"], all = profile["seconds"], rest = profile["rest_seconds"];
  EXPECT_GT(seconds, 0);
  EXPECT_NEAR(seconds + rest, all, 1e-9);
  EXPECT_EQ(profile["regions_per_token"], 0) << "one row is one task, which needs no fork";
  EXPECT_NEAR(kernel["roofline"], 3210e-9 / seconds, 1e-3 * 3210e-9 / seconds);
  EXPECT_EQ(profile["limits"]["instruction"], "given");
}

TEST_F(LauncherTest, BenchProfileCountsRegionsOfBatches) {
  auto profile = profileOf("--gen 4 --batch 3");
  EXPECT_NEAR(profile["regions_per_token"], 4.0 / 12, 1e-9);
}

TEST_F(LauncherTest, BenchProfileAsATable) {
  Outcome outcome = run("bench --prompt 4 --gen 3 --repeat 1 --profile");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("profile of pp4: 1 call of the model"));
  EXPECT_THAT(outcome.out, HasSubstr("profile of tg3: 3 calls of the model"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("limits: [0-9.]+ GB/s read, [0-9]+ GFLOP/s"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\n  head +3 "));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\n  rest "));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\n  total +3 "));
}

TEST_F(LauncherTest, BenchProfileExplainsSharesAboveTheLimit) {
  const std::string bench = "bench --gen 3 --repeat 1 --profile ", words = "limit % above 100";
  EXPECT_THAT(
      run(bench + "--peak-gb 0.001 --peak-gflop 1e9").out,
      HasSubstr("\nlimit % above 100: the bytes came from the processor's caches, while the "
                "limit is that of memory\n"));
  const std::string fast = run(bench + "--peak-gb 1e9 --peak-gflop 0.001").out;
  EXPECT_THAT(fast, HasSubstr("\nlimit % above 100: the compute limit is too low; if it was "
                              "measured, the machine was busy or changed its clock, see "
                              "--peak-gflop\n"));
  EXPECT_THAT(fast, testing::Not(HasSubstr("caches, while")));
  EXPECT_THAT(run(bench + "--peak-gb 1e9 --peak-gflop 1e9").out, testing::Not(HasSubstr(words)));
}

TEST_F(LauncherTest, BenchWritesATrace) {
  std::string trace = folder.file("trace.json");
  Outcome outcome =
      run("bench --prompt 4 --gen 3 --batch 2 --repeat 1 --threads 2 --trace " + trace);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("profile of")));
  auto events = nlohmann::json::parse(contents(trace))["traceEvents"];
  int launches = 0, parts = 0, calls = 0;
  for (const auto &event : events) {
    if (event["ph"] != "X")
      continue;
    EXPECT_GE(event["ts"], 0);
    EXPECT_GE(event["dur"], 0);
    launches += event["name"] == "head" && event["tid"] == 0;
    parts += event["name"] == "head" && event["tid"] > 0;
    calls += event["name"] == "call";
  }
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(launches, 4);
  EXPECT_GE(parts, 3) << "three steps of two rows";
  EXPECT_LE(parts, 3 * 2) << "a thread takes part once, or not at all if the other was faster";
  EXPECT_THAT(folder.entries(), ElementsAre("program", "stderr", "stdout", "trace.json"));
  expectError(run("bench --gen 1 --trace /nowhere/t.json"),
              "/nowhere/t.json: cannot be written (its folder does not exist)");
}

TEST_F(LauncherTest, BenchDefaultsFitTheContext) {
  Outcome outcome = run("bench --repeat 1");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("pp20"));
  EXPECT_THAT(outcome.out, HasSubstr("tg20"));
}

/// The likeliest id of each row of logits.
std::vector<int32_t> topsOf(const std::string &rows) {
  std::vector<int32_t> tops;
  for (size_t at = 0; at + fakeVocab * sizeof(float) <= rows.size();
       at += fakeVocab * sizeof(float))
    tops.push_back(
        *rt::argmax(std::span(reinterpret_cast<const float *>(rows.data() + at), fakeVocab)));
  return tops;
}

TEST_F(LauncherTest, ScoreAnswersWithTheWantedRows) {
  // Three ids, the last two wanted; one more; back to one position, two others.
  Outcome outcome = shell("printf '0 1 1 5 3\n3/20 0 4\n1 0 9 9' | " + program + " score");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.size(), 5 * fakeVocab * sizeof(float));
  EXPECT_THAT(topsOf(outcome.out),
              ElementsAre(fakeNext({1, 5}), fakeNext({1, 5, 3}), fakeNext({1, 5, 3, 4}),
                          fakeNext({1, 9}), fakeNext({1, 9, 9})));
  EXPECT_EQ(outcome.err, "");
}

TEST_F(LauncherTest, ScoreComputesInChunks) {
  std::string line = "printf '0 0 1 5 3 9 2\n' | " + program + " score --prefill-chunk ";
  std::string whole = shell(line + "512").out;
  EXPECT_EQ(topsOf(whole).size(), 5u);
  for (const char *chunk : {"1", "2", "4"})
    EXPECT_EQ(shell(line + chunk).out, whole);
}

TEST_F(LauncherTest, ScoreComputesPromptsUnlessAskedForDecoding) {
  writeFakeProgram(program, MICA_LAUNCHER, dependingOnRole(fakeManifest()));
  std::string line = "printf '0 0 1 5 3\n3 0 4\n' | " + program + " score ";
  std::vector<int32_t> tops = {fakeNext({1}), fakeNext({1, 5}), fakeNext({1, 5, 3}),
                               fakeNext({1, 5, 3, 4})};
  EXPECT_EQ(topsOf(shell(line).out), tops);
  EXPECT_EQ(topsOf(shell(line + "--prefill-chunk 1").out), tops);
  for (int32_t &top : tops)
    top = (top + 1) % fakeVocab;
  EXPECT_EQ(topsOf(shell(line + "--as-decode").out), tops);
  EXPECT_EQ(topsOf(shell(line + "--as-decode --prefill-chunk 2").out), tops);
}

TEST_F(LauncherTest, ScoreRefusesInvalidRequests) {
  auto score = [&](const std::string &lines) {
    return shell("printf '" + lines + "' | " + program + " score");
  };
  expectError(score("0 0\n"), "fewer than three words");
  expectError(score("\n"), "fewer than three words");
  expectError(score("0 0 x\n"), "'x' is not a valid number");
  expectError(score("0/x 0 1\n"), "'0/x' is not a valid number");
  expectError(score("0 0/8 1\n"), "'0/8' is not a valid number");
  expectError(score("0 0 -1\n"), "'-1' is not a valid number");
  expectError(score("0 0 32\n"), "token 32 is not in the model's vocabulary");
  expectError(score("1 0 3\n"), "cannot go back to 1 positions of 0");
  expectError(shell("printf '0 0 1\n' | " + program + " score >/dev/full"),
              "cannot write to the standard output");
  expectError(shell(program + " score < /"), "cannot read the standard input");
  EXPECT_EQ(score("").status, 0) << "no question, no answer";
}

TEST_F(LauncherTest, InfoDescribes) {
  Outcome outcome = run("info --json --check");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["model"], "fake");
  EXPECT_EQ(json["tokenizer"], false);
  EXPECT_EQ(json["runs_here"], true);
  EXPECT_EQ(json["cache_bytes_per_token"], 16);
  EXPECT_EQ(json["cache_bytes"], 320);
  EXPECT_EQ(json["check"], "ok");
  EXPECT_EQ(json["manifest"]["config"]["layers"], 1);
  EXPECT_EQ(json["weights"], "f32");
  std::string text = run("info").out;
  EXPECT_THAT(text, HasSubstr("20 positions, 16 bytes each, 320 bytes for all\n"));
  EXPECT_THAT(text, HasSubstr("weights       f32, 32.00 bits per weight\n"));
}

TEST_F(LauncherTest, LicensesNameEverythingInside) {
  std::string notices = run("info --licenses").out;
  for (const char *name :
       {"CLI11", "Niels Lohmann", "Yann Collet", "PCRE2", "libstdc++", "Apache License", "XByak"})
    EXPECT_THAT(notices, HasSubstr(name));
}

TEST_F(LauncherTest, DamagedWeightsAreFoundByCheck) {
  std::string bytes = contents(program);
  auto layout = program::readLayout(rt::MemorySource(std::as_bytes(std::span(bytes))));
  ASSERT_TRUE(layout);
  bytes[layout->find(program::SectionKind::Weights)->offset + 9] ^= 1;
  std::ofstream(folder.file("damaged"), std::ios::binary) << bytes;
  Outcome outcome =
      shell("chmod +x " + folder.file("damaged") + "; " + folder.file("damaged") + " info --check");
  expectError(outcome, "its section 'weights' does not match its checksum");
}

TEST_F(LauncherTest, TruncatedProgramIsRefused) {
  std::string bytes = contents(program);
  std::ofstream(folder.file("cut"), std::ios::binary) << bytes.substr(0, bytes.size() - 4096);
  Outcome outcome =
      shell("chmod +x " + folder.file("cut") + "; " + folder.file("cut") + " --tokens 1");
  expectError(outcome, "the program is truncated");
}

TEST_F(LauncherTest, BareLauncherIsRefused) {
  expectError(shell(std::string(MICA_LAUNCHER) + " --tokens 1"),
              "is not a Mica program, or a truncated one");
}

TEST_F(LauncherTest, MissingCpuFeatureIsRefusedInOneLine) {
  writeFakeProgram(program, MICA_LAUNCHER, fakeManifest(R"("sse2", "no-such-feature")"));
  expectError(run("--tokens 1"), "compiled for fake-cpu, but this machine");
  expectError(run("--tokens 1"), "lacks no-such-feature;");
  EXPECT_EQ(run("info").status, 0) << "info works on any machine";
}

TEST_F(LauncherTest, RefusesUnderAnOlderCpu) {
  if (std::string reason = whyNoEmulator(); !reason.empty())
    GTEST_SKIP() << reason;
  writeFakeProgram(program, MICA_LAUNCHER, fakeManifest(R"("sse4.2", "avx2", "fma")"));
  expectError(shell("qemu-x86_64 -cpu Nehalem " + program + " --tokens 1"), "lacks avx2, fma;");
  // Features implied by avx or avx2 are not mentioned.
  writeFakeProgram(program, MICA_LAUNCHER, fakeManifest(R"("avx512f", "avx", "avx2", "bmi2")"));
  expectError(shell("qemu-x86_64 -cpu Nehalem " + program + " --tokens 1"), "lacks avx, bmi2;");
}

TEST_F(LauncherTest, RunsOnAnOlderCpu) {
  if (std::string reason = whyNoEmulator(); !reason.empty())
    GTEST_SKIP() << reason;
  Outcome outcome = shell("qemu-x86_64 -cpu Nehalem " + program +
                          " --tokens 1 -n 3 --temperature 0 --ignore-eos");
  EXPECT_EQ(outcome.out, joined(fakeContinuation({1}, 3))) << outcome.err;
}
} // namespace
