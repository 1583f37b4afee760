// mica-ranks ONE SEVERAL [THREADS]: checks that the logits of the program SEVERAL, whose ranks are
// threads of this process, with THREADS threads each, are bit-identical to those of the program ONE
// of the same model: of prompts of several sizes and of steps of decoding, with logits for every
// row. Prints the first difference and exits with 1, or prints how much was compared.
#include "backends/cpu/device/CpuDevice.h"
#include "backends/runtime/abi/KernelStack.h"
#include "backends/runtime/engine/Session.h"
#include "backends/runtime/ranks/RankResources.h"
#include "backends/runtime/support/Threads.h"
#include "tests/unit/backends/runtime/ranks/ThreadRanks.h"

#include <cstdio>
#include <cstdlib>
#include <random>

using namespace mica::rt;

namespace {
[[noreturn]] void die(const std::string &message) {
  std::fprintf(stderr, "mica-ranks: %s\n", message.c_str());
  // Other ranks may be waiting.
  std::_Exit(1);
}

void orDie(Status status) {
  if (!status)
    die(status.error().message);
}
template <typename T> T orDie(Result<T> result) {
  if (!result)
    die(result.error().message);
  return *std::move(result);
}

std::unique_ptr<Model> loadModel(const char *path, const Resources &resources,
                                 Communicator *ranks) {
  CpuDevice device;
  return orDie(Model::load(orDie(mica::program::ProgramFile::open(path)), device, resources,
                           Pages::Small, ranks));
}

/// The logits of all rows of a schedule that is the same for all models with this vocabulary.
std::vector<float> logitsOf(const Model &model) {
  constexpr int64_t sequences = 3;
  constexpr int64_t promptSizes[sequences] = {1, 37, 150};
  constexpr int steps = 6;
  const Manifest &m = model.manifest();
  std::mt19937 random(3);
  auto token = [&] { return static_cast<int32_t>(random() % static_cast<uint64_t>(m.vocab)); };
  auto session = orDie(Session::create(model, sequences, 128));
  std::vector<float> all;
  auto decode = [&] {
    std::span<const float> logits = orDie(session->decode());
    all.insert(all.end(), logits.begin(), logits.end());
  };
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    int64_t size = std::min(promptSizes[sequence], m.maxSeq - steps);
    for (int64_t i = 0; i < size; ++i) {
      orDie(session->add(sequence, token(), RowRole::Prompt, true));
      if (session->isFull() || i + 1 == size)
        decode();
    }
  }
  for (int step = 0; step < steps; ++step) {
    for (int64_t sequence = 0; sequence < sequences; ++sequence)
      orDie(session->add(sequence, token(), RowRole::Decode, true));
    decode();
  }
  return all;
}
} // namespace

int main(int argc, char **argv) {
  if (argc < 3 || argc > 4)
    die("usage: mica-ranks ONE SEVERAL [THREADS]");
  unsigned threads = argc == 4 ? static_cast<unsigned>(std::atoi(argv[3])) : 1;
  orDie(ensureStackSize(threadStackBytes));
  std::vector<float> expected = logitsOf(*loadModel(argv[1], threads, nullptr)), found;
  int64_t size = orDie(readManifest(orDie(mica::program::ProgramFile::open(argv[2])))).ranks;
  runRanks(size, [&](SharedMemoryRanks &ranks) {
    RankResources resources = orDie(resourcesOfRank(ranks, threads));
    ranks.setOversubscribed(resources.areOversubscribed);
    std::unique_ptr<Model> model = loadModel(argv[2], resources, &ranks);
    if (ranks.rank() > 0)
      return orDie(Session::follow(*model));
    found = logitsOf(*model);
  });
  if (found.size() != expected.size())
    die("another number of logits");
  for (size_t i = 0; i < found.size(); ++i)
    if (std::memcmp(&found[i], &expected[i], sizeof(float)) != 0)
      die("logit " + std::to_string(i) + " of " + std::to_string(found.size()) + " is " +
          std::to_string(found[i]) + ", but " + std::to_string(expected[i]) + " on one rank");
  std::printf("%lld ranks: %zu logits are the same\n", static_cast<long long>(size), found.size());
}
