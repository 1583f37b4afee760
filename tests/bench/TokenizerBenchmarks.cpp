// mica-tokenizer-benchmarks: the speed of tokenizing and detokenizing on one core; hostile text
// must take linear time.
//
// The English text is Alice in Wonderland from ../shared if available, otherwise the pages of docs,
// ten megabytes of it. Published vocabularies are from ../shared.
#include "tests/unit/Paths.h"
#include "tests/unit/frontend/text/tokenizer/TokenizerFixture.h"

#include <benchmark/benchmark.h>

#include <malloc.h>

using namespace mica;
using namespace mica::test;

namespace {

struct Case {
  std::string name;
  std::filesystem::path file; ///< a tokenizer.json or tokenizer.model
};

std::vector<Case> cases() {
  std::filesystem::path models = std::filesystem::path(MICA_SOURCE_DIR) / "tests/models";
  std::vector<Case> all = {{"gpt2", sharedData() / "tokenizers/gpt2_tokenizer.json"},
                           {"smollm", sharedData() / "tokenizers/smollm_tokenizer.json"},
                           {"mistral_v1", sharedData() / "tokenizers/mistral_v1_tokenizer.model"},
                           {"minimind", models / "minimind-dense/tokenizer.json"},
                           {"sp_unigram", tokenizerData() / "sp_unigram.model"}};
  std::erase_if(all, [](const Case &one) { return !std::filesystem::exists(one.file); });
  return all;
}

llvm::Expected<OpenTokenizer> open(const Case &one) {
  TemporaryFolder folder;
  folder.link("tokenizer" + one.file.extension().string(), one.file);
  return openFolder(folder.path());
}

std::string repeated(const std::string &unit, size_t size) {
  std::string text;
  while (text.size() < size)
    text += unit;
  return text;
}

std::string english(size_t size) {
  std::string text = readText(sharedData() / "text/alice29.txt");
  if (text.empty())
    for (const auto &entry :
         std::filesystem::directory_iterator(std::filesystem::path(MICA_SOURCE_DIR) / "docs"))
      if (entry.path().extension() == ".md")
        text += readText(entry.path());
  return repeated(text, size);
}

void count(benchmark::State &state, const std::string &text) {
  state.SetBytesProcessed(static_cast<int64_t>(text.size()) * state.iterations());
}

void encode(benchmark::State &state, const Case &one, const std::string &text) {
  auto opened = open(one);
  if (!opened)
    return state.SkipWithError(llvm::toString(opened.takeError()).c_str());
  for (auto _ : state)
    benchmark::DoNotOptimize(opened->tokenizer.encode(text, /*addSpecial=*/false)->data());
  count(state, text);
}

void decode(benchmark::State &state, const Case &one, const std::string &text) {
  auto opened = open(one);
  if (!opened)
    return state.SkipWithError(llvm::toString(opened.takeError()).c_str());
  std::vector<int32_t> ids = *opened->tokenizer.encode(text, /*addSpecial=*/false);
  for (auto _ : state)
    benchmark::DoNotOptimize(opened->tokenizer.decode(ids).data());
  count(state, text);
}

void registerAll() {
  auto add = [](const std::string &name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMillisecond);
  };
  std::string text = english(10'000'000);
  for (const Case &one : cases()) {
    add("encode/english/" + one.name, [=](benchmark::State &state) { encode(state, one, text); });
    add("decode/english/" + one.name, [=](benchmark::State &state) { decode(state, one, text); });
    for (size_t megabytes : {1, 2})
      for (auto [what, unit] : {std::pair("letters", "a"), std::pair("spaces", " "),
                                std::pair("digits", "7"), std::pair("han", "\u4f60")}) {
        std::string hostile = repeated(unit, megabytes * 1'000'000);
        add("encode/" + std::string(what) + ":" + std::to_string(megabytes) + "MB/" + one.name,
            [=](benchmark::State &state) { encode(state, one, hostile); });
      }
  }
}

} // namespace

int main(int argc, char **argv) {
  // Large texts use new pages each time, as in a program with one text: otherwise texts whose
  // buffers malloc keeps would seem faster per byte than those whose buffers it returns to the
  // system.
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  registerAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
