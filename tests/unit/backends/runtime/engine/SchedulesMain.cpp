// mica-schedules PROGRAM SEED COUNT: checks that a request's logits are bit-identical to those of
// the request alone, in at least COUNT random schedules: 1 to 64 sequences, 1 to 3 threads, up to
// 512 rows of prompts per call, all ways to schedule prompts, requests that join, wait, are
// canceled, draft tokens by lookup or by a head of the program, and find a part of their prompt in
// a cache or a checkpoint: a prefix of another prompt, or the conversation up to an earlier answer.
// Prints the first difference and exits with 1, or prints how much was compared.
#include "backends/cpu/device/CpuDevice.h"
#include "backends/runtime/abi/KernelStack.h"
#include "backends/runtime/engine/Scheduler.h"
#include "backends/runtime/support/Threads.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string_view>

using namespace mica::rt;

namespace {
constexpr size_t numRequests = 96;
constexpr int64_t chunkAlone = 128, serverChunk = 256, maxChunk = 512;
/// Of a prompt; less if the context of the program is shorter. Most are much shorter.
constexpr size_t maxPrompt = 900;
constexpr size_t maxAnswer = 24, maxQuestion = 40;
constexpr unsigned maxThreads = 3;

struct Answer final : RequestListener {
  Result<bool> token(int32_t token, std::span<const float> logits) override {
    tokens.push_back(token);
    hashes.push_back(std::hash<std::string_view>()(
        {reinterpret_cast<const char *>(logits.data()), logits.size_bytes()}));
    return true;
  }
  void finished(const RequestResult &result) override {
    finish = result.finish;
    reused = result.reusedTokens;
    drafted = result.drafted;
  }

  Tokens tokens;
  std::vector<size_t> hashes; ///< of the logits from which each token was chosen
  std::optional<Finish> finish;
  int64_t reused = 0, drafted = 0;
};

[[noreturn]] void die(const std::string &message) {
  std::fprintf(stderr, "mica-schedules: %s\n", message.c_str());
  std::exit(1);
}

template <typename T> T orDie(Result<T> result) {
  if (!result)
    die(result.error().message);
  return *std::move(result);
}

Tokens randomTokens(const Manifest &manifest, std::mt19937 &random, size_t count) {
  Tokens tokens(count);
  for (int32_t &token : tokens)
    token = static_cast<int32_t>(random() % static_cast<uint64_t>(manifest.vocab));
  return tokens;
}

/// Prompts with common prefixes, so that some reuse or copy each other's caches.
std::vector<Request> makeRequests(const Manifest &manifest, std::mt19937 &random) {
  // A second turn has two answers and a question as well.
  const size_t longest =
      std::min(maxPrompt, static_cast<size_t>(manifest.maxSeq) - (2 * maxAnswer + maxQuestion));
  const Tokens shared = randomTokens(manifest, random, longest);
  std::vector<Request> requests(numRequests);
  for (Request &request : requests) {
    size_t kind = random() % 8, maxSize = kind == 0 ? longest : kind == 1 ? 400 : 60;
    size_t size = 1 + random() % maxSize, same = random() % (size + 1);
    request.prompt.assign(shared.begin(), shared.begin() + static_cast<int64_t>(same));
    Tokens own = randomTokens(manifest, random, size - same);
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    request.maxReused = static_cast<int64_t>(size);
    request.settings.temperature = random() % 2;
    request.settings.seed = random();
    request.settings.maxTokens = 1 + static_cast<int64_t>(random() % maxAnswer);
    request.settings.ignoreEos = true;
    if (random() % 3 == 0) {
      request.settings.repetitionPenalty = 1.3;
      request.settings.logitBias = {{randomTokens(manifest, random, 1)[0], 2}};
    }
    // Neither changes the output.
    if (random() % 4 == 0)
      request.settings.lookup = 4;
    else if (manifest.canDraft() && random() % 2)
      request.settings.mtp = 1 + static_cast<int64_t>(random() % 4);
    request.limitGaps = random() % 4 > 0;
  }
  return requests;
}

/// The server's options, and others.
Scheduler::Options randomOptions(std::mt19937 &random) {
  Scheduler::Options options;
  options.slots = 1 + static_cast<int64_t>(random() % (random() % 2 ? 8 : 64));
  options.promptRows =
      random() % 3 == 0
          ? serverChunk
          : 1 + static_cast<int64_t>(random() % (random() % 2 ? chunkAlone : maxChunk));
  options.promptsShareCalls = random() % 4 > 0;
  options.promptsJoinDecode = random() % 4 > 0;
  options.promptsFirst = random() % 4 == 0;
  if (random() % 2)
    options.checkpointBytes = 1 << 20;
  return options;
}

/// The turn of a conversation that follows `request` and its answer.
Request nextTurn(Request request, const Tokens &answer, const Tokens &question) {
  request.prompt.insert(request.prompt.end(), answer.begin(), answer.end());
  request.prompt.insert(request.prompt.end(), question.begin(), question.end());
  request.maxReused = static_cast<int64_t>(request.prompt.size());
  return request;
}

/// The answer to a request if nothing is drafted, and nothing else is computed or cached.
Answer answerAlone(const Model &model, Request request) {
  Answer answer;
  request.settings.lookup.reset();
  request.settings.mtp.reset();
  auto scheduler = orDie(Scheduler::create(model, {.slots = 1, .promptRows = chunkAlone}));
  orDie(scheduler->submit(request, answer));
  while (scheduler->step()) {
  }
  return answer;
}
} // namespace

int main(int argc, char **argv) {
  if (argc != 4)
    die("usage: mica-schedules PROGRAM SEED COUNT");
  if (Status stacks = ensureStackSize(threadStackBytes); !stacks)
    die(stacks.error().message);
  CpuDevice device;
  std::vector<std::unique_ptr<Model>> models; // with 1, 2, ... threads
  for (unsigned threads = 1; threads <= maxThreads; ++threads)
    models.push_back(
        orDie(Model::load(orDie(mica::program::ProgramFile::open(argv[1])), device, threads)));
  const Model &first = *models.front();
  std::mt19937 random(static_cast<unsigned>(std::atoi(argv[2])));
  std::vector<Request> requests = makeRequests(first.manifest(), random);
  std::vector<Answer> alone;
  // After the first turns, the second turn of each conversation.
  for (size_t i = 0; i < 2 * numRequests; ++i) {
    if (i >= numRequests)
      requests.push_back(
          nextTurn(requests[i - numRequests], alone[i - numRequests].tokens,
                   randomTokens(first.manifest(), random, 1 + random() % maxQuestion)));
    alone.push_back(answerAlone(first, requests[i]));
  }
  int64_t compared = 0, canceled = 0, reused = 0, joined = 0, interruptions = 0, answers = 0,
          copied = 0, drafted = 0;
  // What a few schedules cover is a matter of luck, and of time: more follow if it is not enough.
  const int64_t wanted = std::atoi(argv[3]), max = 20 * wanted;
  auto isEnough = [&] {
    return compared > 100 * wanted && std::min(canceled, interruptions) > 0 &&
           std::min(reused, copied) > 10 * wanted &&
           (!first.manifest().canDraft() || drafted > 10 * wanted) &&
           (first.manifest().dependsOnRole ? std::min(interruptions, answers) : joined) >
               10 * wanted;
  };
  for (int64_t round = 0; round < wanted || (round < max && !isEnough()); ++round) {
    Scheduler::Options options = randomOptions(random);
    size_t threads = 1 + random() % maxThreads;
    auto scheduler = orDie(Scheduler::create(*models[threads - 1], options));
    struct Sent {
      size_t request;
      Answer answer;
      Scheduler::RequestId id;
    };
    std::deque<Sent> sent;
    size_t count = 8 + random() % static_cast<uint64_t>(2 * options.slots);
    do {
      while (sent.size() < count && random() % 3 > 0) {
        // A first turn, or the one after the last answered turn, which is likely to be cached.
        size_t request = random() % numRequests;
        auto answered = std::find_if(sent.rbegin(), sent.rend(), [](const Sent &earlier) {
          return earlier.request < numRequests && earlier.answer.finish;
        });
        if (answered != sent.rend() && random() % 2)
          request = answered->request + numRequests;
        // One completion, or two of the same prompt.
        auto own = std::make_shared<const Request>(requests[request]);
        const SharedRequest shared{own, {own, &own->prompt}, own->stream};
        std::optional<Scheduler::RequestId> leader;
        for (size_t completions = 1 + (random() % 4 == 0); completions > 0; --completions) {
          Sent &next = sent.emplace_back();
          next.request = request;
          next.id = scheduler->submit(shared, next.answer, leader);
          leader = next.id;
        }
      }
      if (!sent.empty() && random() % 12 == 0)
        scheduler->cancel(sent[random() % sent.size()].id);
      if (random() % 8 == 0)
        scheduler->recomputeAnswers();
    } while (scheduler->step() || sent.size() < count);
    joined += scheduler->totals().joinedTokens;
    interruptions += scheduler->totals().interruptions;
    answers += scheduler->totals().recomputedAnswerTokens;
    copied += scheduler->totals().copiedTokens;
    for (const Sent &each : sent) {
      const Answer &expected = alone[each.request];
      bool cut = each.answer.finish == Finish::Canceled;
      canceled += cut;
      if (requests[each.request].settings.mtp)
        drafted += each.answer.drafted;
      if (each.request >= numRequests)
        reused += each.answer.reused;
      compared += static_cast<int64_t>(each.answer.tokens.size());
      if (!cut && each.answer.finish != expected.finish)
        die("round " + std::to_string(round) + ": a request has another end");
      for (size_t i = 0; i < std::max(each.answer.tokens.size(), cut ? 0 : expected.tokens.size());
           ++i)
        if (i >= expected.tokens.size() || i >= each.answer.tokens.size() ||
            each.answer.tokens[i] != expected.tokens[i] ||
            each.answer.hashes[i] != expected.hashes[i])
          die("round " + std::to_string(round) + ", " + std::to_string(threads) + " threads, " +
              std::to_string(options.slots) + " sequences, chunks of " +
              std::to_string(options.promptRows) + ": token " + std::to_string(i) +
              " of a request with a prompt of " +
              std::to_string(requests[each.request].prompt.size()) + " tokens is another");
    }
  }
  std::printf(
      "%lld tokens compared, %lld requests canceled, %lld tokens of second turns cached, "
      "%lld tokens of prompts computed in calls that decode, %lld calls for prompts "
      "interrupted to decode, %lld tokens of answers recomputed between turns, %lld tokens of "
      "prompts copied, %lld tokens drafted by a head\n",
      static_cast<long long>(compared), static_cast<long long>(canceled),
      static_cast<long long>(reused), static_cast<long long>(joined),
      static_cast<long long>(interruptions), static_cast<long long>(answers),
      static_cast<long long>(copied), static_cast<long long>(drafted));
}
