#include "backends/cpu/runtime/Generate.h"

#include <algorithm>
#include <chrono>

namespace mica::rt {

namespace {
class Loop {
public:
  Loop(const Model &model, Session &session, const std::vector<Tokens> &prompts,
       const GenerateOptions &options, GenerateListener &listener)
      : model(model), session(session), prompts(prompts), options(options), listener(listener) {
    for (size_t s = 0; s < prompts.size(); ++s) {
      samplers.emplace_back(options.sampling, model.manifest().vocab, s);
      for (int32_t token : prompts[s])
        samplers.back().observe(token);
    }
    result.sequences.resize(prompts.size());
    active.resize(prompts.size(), options.maxTokens > 0);
  }

  Status prefill();
  Status decode();
  GenerateResult take() { return std::move(result); }

private:
  /// A queued row whose logits will come.
  struct Wanted {
    int64_t sequence;
    bool sample; ///< Whether the next token is drawn from it, or the row is only listened to.
  };

  Status push(int64_t sequence, int32_t token, bool sample);
  Status run();
  Status choose(int64_t sequence, std::span<const float> row);
  bool feedNext(Status &failure);

  const Model &model;
  Session &session;
  const std::vector<Tokens> &prompts;
  const GenerateOptions &options;
  GenerateListener &listener;
  std::vector<Sampler> samplers;
  std::vector<bool> active; ///< The sequence wants another token.
  std::vector<Wanted> wanted;
  GenerateResult result;
};

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Status Loop::push(int64_t sequence, int32_t token, bool sample) {
  bool want = sample || options.allLogits;
  if (want)
    wanted.push_back({sequence, sample});
  return session.push(sequence, token, want);
}

Status Loop::choose(int64_t sequence, std::span<const float> row) {
  Result<int32_t> token = samplers[sequence].sample(row);
  if (!token)
    return token.error();
  samplers[sequence].observe(*token);
  Generated &generated = result.sequences[sequence];
  generated.tokens.push_back(*token);
  const std::vector<int32_t> &eos = model.manifest().eos;
  if (!options.ignoreEos && std::find(eos.begin(), eos.end(), *token) != eos.end()) {
    generated.finish = Finish::EndToken;
    active[sequence] = false;
  } else if (static_cast<int64_t>(generated.tokens.size()) >= options.maxTokens) {
    active[sequence] = false;
  } else if (session.room(sequence) == 0) {
    generated.finish = Finish::ContextFull;
    active[sequence] = false;
  }
  return listener.token(sequence, *token);
}

Status Loop::run() {
  Result<std::span<const float>> logits = session.run();
  if (!logits)
    return logits.error();
  size_t vocab = static_cast<size_t>(model.manifest().vocab);
  std::vector<Wanted> rows = std::move(wanted);
  wanted.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    std::span<const float> row = logits->subspan(i * vocab, vocab);
    if (options.allLogits)
      if (Status heard = listener.logits(rows[i].sequence, row); !heard)
        return heard;
    if (rows[i].sample)
      if (Status chosen = choose(rows[i].sequence, row); !chosen)
        return chosen;
  }
  return {};
}

Status Loop::prefill() {
  auto start = std::chrono::steady_clock::now();
  for (size_t s = 0; s < prompts.size(); ++s)
    for (size_t i = 0; i < prompts[s].size(); ++i) {
      bool last = i + 1 == prompts[s].size();
      if (Status pushed = push(static_cast<int64_t>(s), prompts[s][i], last && active[s]); !pushed)
        return pushed;
      ++result.promptTokens;
      if (session.queued() >= options.prefillChunk || (last && s + 1 == prompts.size()))
        if (Status ran = run(); !ran)
          return ran;
    }
  result.promptSeconds = secondsSince(start);
  return {};
}

/// Queues the newest token of every sequence that wants another; false if none does.
bool Loop::feedNext(Status &failure) {
  for (size_t s = 0; s < active.size() && failure; ++s)
    if (active[s])
      failure = push(static_cast<int64_t>(s), result.sequences[s].tokens.back(), true);
  return failure && session.queued() > 0;
}

Status Loop::decode() {
  auto start = std::chrono::steady_clock::now();
  Status failure;
  while (feedNext(failure)) {
    result.decodeTokens += session.queued();
    failure = run();
    if (!failure)
      break;
  }
  result.decodeSeconds = secondsSince(start);
  return failure;
}

Status checkPrompts(const Manifest &manifest, const std::vector<Tokens> &prompts) {
  for (const Tokens &prompt : prompts) {
    if (prompt.empty())
      return Error{"the prompt has no tokens, give some with -p, -f or --tokens"};
    if (static_cast<int64_t>(prompt.size()) > manifest.maxSeq)
      return Error{"the prompt has " + std::to_string(prompt.size()) + " tokens and the context " +
                   std::to_string(manifest.maxSeq) +
                   " positions, shorten it or compile with a larger --max-seq"};
  }
  return {};
}
} // namespace

Result<GenerateResult> generate(const Model &model, const std::vector<Tokens> &prompts,
                                const GenerateOptions &options, GenerateListener &listener) {
  if (Status fits = checkPrompts(model.manifest(), prompts); !fits)
    return fits.error();
  Result<std::unique_ptr<Session>> session =
      Session::create(model, static_cast<int64_t>(prompts.size()));
  if (!session)
    return session.error();
  Loop loop(model, **session, prompts, options, listener);
  Status done = loop.prefill();
  if (done)
    done = loop.decode();
  if (!done)
    return done.error();
  return loop.take();
}

} // namespace mica::rt
