#include "tests/unit/backends/runtime/FakeProgram.h"
#include "backends/runtime/program/ProgramWriter.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace mica::test {

using program::SectionKind;

std::string fakeManifest(const std::string &features, int64_t vocab, int64_t maxSeq) {
  return R"({"name": "fake", "weights": "f32", "kv": "f32", "vocab": )" + std::to_string(vocab) +
         R"(, "max_seq": )" + std::to_string(maxSeq) + R"(, "max_positions": 1000,
    "target": {"cpu": "fake-cpu", "features": [)" +
         features + R"(]},
    "caches": [{"name": "k", "element": "f32", "shape": [-1, -2, 4], "bytes_per_token": 4},
               {"name": "v", "element": "bf16", "shape": [3, -1, -2, 8], "bytes_per_token": 12}],
    "entry": {"abi": 1, "arguments": ["logits", "positions", "cache", "weights", "logit_indices", "tokens",
                                      "cache", "sequences", "scratch"]},
    "position_block": 4, "scratch": {"bytes_per_row": 256, "bytes_per_output": 64, "bytes_fixed": 1024}, "weight_bytes": 64,
    "parameters": 16, "batch_invariant_rows": 6,
    "bos": 1, "eos": [2], "generation": {"temperature": 0.5, "top_k": 7},
    "cost": {"weight_bytes_per_token": 1000, "flops_per_token": 2000, "flops_per_logits": 500},
    "config": {"layers": 1}})";
}

std::string fakeManifestOfLengths(int64_t maxSeq) {
  std::string manifest = fakeManifest("", fakeVocab, maxSeq);
  std::string_view last = R"("scratch"])";
  manifest.replace(manifest.find(last), last.size(), R"("scratch", "lengths"])");
  manifest.insert(manifest.rfind('}'),
                  R"(, "rope_length_thresholds": [)" + std::to_string(fakeThreshold) + "]");
  return manifest;
}

std::string fakeManifestOfWindows() {
  std::string manifest = fakeManifest("", fakeVocab, 60);
  std::string_view first = R"("bytes_per_token": 4)";
  manifest.replace(manifest.find(first), first.size(),
                   std::string(first) + R"(, "window": )" + std::to_string(fakeWindow));
  manifest.insert(manifest.rfind('}'), R"(, "rewind_positions": )" + std::to_string(fakeRewind));
  return manifest;
}

std::string fakeManifestOfStates() {
  std::string manifest = fakeManifest("", fakeVocab, 1000);
  for (std::string_view limit : {"\"max_seq\": ", "\"max_positions\": "})
    manifest.replace(manifest.find(limit) + limit.size(), 4, "2000");
  size_t begin = manifest.find("[{\"name\": \"k\""), end = manifest.find("}],", begin) + 2;
  return manifest.replace(
      begin, end - begin,
      R"([{"name": "conv", "element": "f32", "shape": [1, -1, 64, 1], "bytes_per_token": 0,
           "window": 4, "slots": 64},
          {"name": "state", "element": "f32", "shape": [2, -1, 2, 396], "bytes_per_token": 0,
           "window": 32, "slots": 64, "matrix": 6, "chunk": 32}])");
}

std::string withBytesPerRow(std::string manifest, uint64_t bytes) {
  std::string_view usual = "\"bytes_per_row\": 256";
  return manifest.replace(manifest.find(usual), usual.size(),
                          "\"bytes_per_row\": " + std::to_string(bytes));
}

std::string dependingOnRole(std::string manifest) {
  manifest.insert(manifest.rfind('}'), R"(, "depends_on_role": true)");
  return manifest;
}

static constexpr std::string_view twoRanks = R"(, "ranks": 2)";

std::string forTwoRanks(std::string manifest) {
  return manifest.insert(manifest.rfind('}'), twoRanks);
}

/// The file of the manifest's model.
static const char *fakeModelOf(const std::string &manifest) {
  auto says = [&](const char *key) { return manifest.find(key) != manifest.npos; };
  return says("slots")                    ? MICA_FAKE_MODEL_OF_STATES
         : says("rope_length_thresholds") ? MICA_FAKE_MODEL_OF_LENGTHS
         : says("depends_on_role")        ? MICA_FAKE_MODEL_OF_ROLES
         : says("rewind_positions")       ? MICA_FAKE_MODEL_OF_WINDOWS
                                          : MICA_FAKE_MODEL;
}

static void require(const rt::Status &status) {
  if (status)
    return;
  std::fprintf(stderr, "fake program: %s\n", status.error().message.c_str());
  std::abort();
}

void writeFakeProgram(const std::string &path, const std::string &launcher,
                      const std::string &manifest, std::span<const std::byte> tokenizer) {
  auto writer = program::ProgramWriter::create(path, launcher);
  if (!writer)
    require(writer.error());
  std::ifstream file(fakeModelOf(manifest), std::ios::binary);
  std::string code((std::istreambuf_iterator<char>(file)), {});
  constexpr uint64_t weightBytes = 64;
  int64_t ranks = manifest.find(twoRanks) == manifest.npos ? 1 : 2;
  std::vector<float> weights(program::bytesOfRanks(weightBytes, ranks) / sizeof(float), 1.0f);
  require((*writer)->add(SectionKind::Code, std::as_bytes(std::span(code))));
  require((*writer)->add(SectionKind::Weights, std::as_bytes(std::span(weights))));
  if (!tokenizer.empty())
    require((*writer)->add(SectionKind::Tokenizer, tokenizer));
  require((*writer)->add(SectionKind::Manifest, std::as_bytes(std::span(manifest))));
  require((*writer)->commit());
}

int32_t fakeNext(const rt::Tokens &tokens, int64_t vocab) {
  int64_t next = 7;
  for (size_t i = 0; i < tokens.size(); ++i)
    next += static_cast<int64_t>(tokens[i]) * static_cast<int64_t>(i + 1);
  return static_cast<int32_t>(next % vocab);
}

int32_t fakeNextInWindow(const rt::Tokens &tokens) {
  int64_t next = 7;
  size_t first = tokens.size() < fakeWindow ? 0 : tokens.size() - fakeWindow;
  for (size_t i = first; i < tokens.size(); ++i)
    next += static_cast<int64_t>(tokens[i]) * static_cast<int64_t>(i + 1);
  return static_cast<int32_t>(next % fakeVocab);
}

rt::Tokens fakeContinuation(rt::Tokens prompt, int64_t count, int64_t vocab) {
  rt::Tokens tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(fakeNext(prompt, vocab));
    prompt.push_back(tokens.back());
  }
  return tokens;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "mica-test-XXXXXX").string();
  path = mkdtemp(pattern.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::vector<std::string> TemporaryFolder::entries() const {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(path))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace mica::test
