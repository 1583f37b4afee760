#include "backends/cpu/runtime/Generate.h"
#include "backends/cpu/runtime/PromptLookup.h"
#include "backends/cpu/runtime/Seconds.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace mica::rt {

namespace {
/// One of the texts.
struct Sequence {
  Sampler sampler;
  PromptLookup lookup;
  Tokens draft;        ///< What has been queued behind the newest token.
  bool active = false; ///< Wants another token.
};

class Loop {
public:
  Loop(const Model &model, Session &session, const std::vector<Tokens> &prompts,
       const GenerateOptions &options, GenerateListener &listener)
      : model(model), session(session), prompts(prompts), options(options), listener(listener) {
    for (size_t s = 0; s < prompts.size(); ++s) {
      sequences.push_back({Sampler(options.sampling, model.manifest().vocab, s),
                           PromptLookup(PromptLookup::leastLikelihoodOf(model.weights().size())),
                           {},
                           false});
      sequences.back().active = options.maxTokens > 0;
      for (int32_t token : prompts[s])
        observe(sequences.back(), token);
    }
    result.sequences.resize(prompts.size());
  }

  Status prefill();
  Status decode();
  GenerateResult take() { return std::move(result); }

private:
  /// A queued row whose logits will come.
  struct Wanted {
    int64_t sequence;
    bool sample; ///< Whether the next token is drawn from it, or the row is only listened to.
    int64_t behind = 0; ///< Drafted rows that follow it.
  };

  void observe(Sequence &sequence, int32_t token);
  void append(Sequence &sequence, int32_t token);
  Status push(int64_t sequence, int32_t token, RowRole role, bool sample, int64_t behind = 0);
  Status run();
  Status choose(const Wanted &row, std::span<const float> logits);
  bool verify(const Wanted &row);
  Result<bool> prepare();
  Status step(int64_t active);
  Status feedSequence(int64_t sequence, int64_t drafts);
  int64_t draftLimit(int64_t sequence, int64_t drafts) const;
  /// Positions that all sequences fill.
  int64_t filled() const {
    int64_t sum = 0;
    for (int64_t s = 0; s < session.sequences(); ++s)
      sum += session.length(s);
    return sum;
  }

  const Model &model;
  Session &session;
  const std::vector<Tokens> &prompts;
  const GenerateOptions &options;
  GenerateListener &listener;
  std::vector<Sequence> sequences;
  std::vector<Wanted> wanted;
  bool stopped = false;  ///< By the listener, while tokens were read again.
  int64_t forgotten = 0; ///< Positions that were filled before that.
  GenerateResult result;
};

void Loop::observe(Sequence &sequence, int32_t token) {
  sequence.sampler.observe(token);
  if (options.lookup > 0)
    sequence.lookup.observe(token);
}

void Loop::append(Sequence &sequence, int32_t token) {
  sequence.sampler.append(token);
  if (options.lookup > 0)
    sequence.lookup.observe(token);
}

Status Loop::push(int64_t sequence, int32_t token, RowRole role, bool sample, int64_t behind) {
  bool want = sample || options.allLogits;
  if (want)
    wanted.push_back({sequence, sample, behind});
  return session.push(sequence, token, role, want);
}

Status Loop::choose(const Wanted &row, std::span<const float> logits) {
  Sequence &sequence = sequences[row.sequence];
  Generated &generated = result.sequences[row.sequence];
  const Tokens &script = options.script;
  Result<int32_t> token = script.empty() ? sequence.sampler.sample(logits)
                                         : Result(script[generated.tokens.size() % script.size()]);
  if (!token)
    return token.error();
  generated.tokens.push_back(*token);
  const std::vector<int32_t> &eos = model.manifest().eos;
  auto isIn = [&](const std::vector<int32_t> &ids) {
    return std::find(ids.begin(), ids.end(), *token) != ids.end();
  };
  if (!options.ignoreEos && (isIn(eos) || isIn(options.endTokens))) {
    generated.finish = Finish::EndToken;
    sequence.active = false;
  } else if (static_cast<int64_t>(generated.tokens.size()) >= options.maxTokens) {
    sequence.active = false;
  } else if (session.room(row.sequence) + row.behind == 0) {
    generated.finish = Finish::ContextFull;
    sequence.active = false;
  }
  if (Status heard = listener.token(row.sequence, *token); !heard)
    return heard;
  if (generated.finish != Finish::EndToken && !listener.goesOn(row.sequence)) {
    generated.finish = Finish::StopText;
    sequence.active = false;
  }
  return {};
}

/// Whether the row behind `row` holds the token that was chosen. If not, that row and all behind it
/// are taken back.
bool Loop::verify(const Wanted &row) {
  Sequence &sequence = sequences[row.sequence];
  auto drafted = static_cast<int64_t>(sequence.draft.size());
  int64_t right = drafted - row.behind;
  int32_t chosen = result.sequences[row.sequence].tokens.back();
  bool same = row.behind > 0 && sequence.draft[right] == chosen;
  bool goesOn = same && sequence.active;
  if (!goesOn) {
    session.truncate(row.sequence, session.length(row.sequence) - row.behind);
    right += same;
    sequence.lookup.learn(drafted, right);
    result.drafted += drafted;
    result.accepted += right;
    sequence.draft.clear();
  }
  append(sequence, chosen);
  return goesOn;
}

/// Reads again what must be. False where the listener ends that, and with it all texts.
Result<bool> Loop::prepare() {
  int64_t before = filled() - session.queued();
  Result<bool> prepared =
      session.prepare([&](int64_t sequence) { return listener.goesOn(sequence); });
  if (!prepared || *prepared)
    return prepared;
  stopped = true;
  forgotten = before - filled();
  wanted.clear();
  for (size_t s = 0; s < sequences.size(); ++s)
    if (std::exchange(sequences[s].active, false))
      result.sequences[s].finish = Finish::StopText;
  return false;
}

Status Loop::run() {
  Result<bool> prepared = prepare();
  if (!prepared)
    return prepared.error();
  if (!*prepared)
    return {};
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
    if (!rows[i].sample)
      continue;
    if (Status chosen = choose(rows[i], row); !chosen)
      return chosen;
    if (!verify(rows[i]))
      i += static_cast<size_t>(rows[i].behind);
  }
  return {};
}

Status Loop::prefill() {
  auto start = std::chrono::steady_clock::now();
  double again = session.secondsReadAgain();
  for (size_t s = 0; s < prompts.size(); ++s)
    for (auto i = static_cast<size_t>(options.held); i < prompts[s].size(); ++i) {
      bool last = i + 1 == prompts[s].size();
      if (session.queued() == 0 && (stopped || !listener.goesOn(static_cast<int64_t>(s)))) {
        result.sequences[s].finish = Finish::StopText;
        sequences[s].active = false;
        break;
      }
      if (Status pushed = push(static_cast<int64_t>(s), prompts[s][i], RowRole::Prompt,
                               last && sequences[s].active);
          !pushed)
        return pushed;
      int64_t rows = session.queued();
      if (rows < options.prefillChunk && !session.atMemoryLimit() &&
          !(last && s + 1 == prompts.size()))
        continue;
      if (Status ran = run(); !ran)
        return ran;
      result.promptTokens += stopped ? 0 : rows;
    }
  result.promptSeconds = secondsSince(start) - (session.secondsReadAgain() - again);
  return {};
}

/// How many tokens may be drafted where `drafts` rows are left for each sequence: no row is
/// computed behind the last token, the end of the context or a length at which all rows change.
int64_t Loop::draftLimit(int64_t sequence, int64_t drafts) const {
  auto made = static_cast<int64_t>(result.sequences[sequence].tokens.size());
  return std::min({options.lookup, drafts, options.maxTokens - made - 1, session.room(sequence) - 1,
                   session.roomBeforeBorder(sequence) - 1});
}

/// Queues the newest token of a sequence and what is drafted behind it.
Status Loop::feedSequence(int64_t s, int64_t drafts) {
  Sequence &sequence = sequences[s];
  if (int64_t limit = draftLimit(s, drafts); limit > 0)
    sequence.draft = sequence.lookup.draft(limit);
  auto behind = static_cast<int64_t>(sequence.draft.size());
  int32_t newest = result.sequences[s].tokens.back();
  if (Status pushed = push(s, newest, RowRole::Decode, true, behind); !pushed)
    return pushed;
  for (int32_t token : sequence.draft)
    if (Status pushed = push(s, token, RowRole::Decode, true, --behind); !pushed)
      return pushed;
  return {};
}

/// Another token, or several, for each of `active` sequences that want one.
Status Loop::step(int64_t active) {
  // With more rows than that, another kernel might round a row's logits differently.
  int64_t drafts = model.manifest().exactRows / active - 1;
  auto call = [&] {
    ++result.decodeCalls;
    return run();
  };
  for (size_t s = 0; s < sequences.size(); ++s) {
    if (session.atMemoryLimit())
      if (Status ran = call(); !ran)
        return ran;
    if (sequences[s].active)
      if (Status fed = feedSequence(static_cast<int64_t>(s), drafts); !fed)
        return fed;
  }
  return session.queued() > 0 ? call() : Status();
}

Status Loop::decode() {
  auto start = std::chrono::steady_clock::now();
  double again = session.secondsReadAgain();
  int64_t before = filled() + forgotten;
  auto active = [&] {
    return std::count_if(sequences.begin(), sequences.end(),
                         [](const Sequence &sequence) { return sequence.active; });
  };
  Status failure;
  while (failure && active() > 0)
    failure = step(active());
  result.decodeTokens = filled() + forgotten - before;
  result.decodeSeconds = secondsSince(start) - (session.secondsReadAgain() - again);
  return failure;
}

Status checkPrompts(const Manifest &manifest, const std::vector<Tokens> &prompts) {
  for (const Tokens &prompt : prompts)
    if (Status fits = checkPrompt(manifest, prompt); !fits)
      return fits;
  return {};
}
} // namespace

Status checkPrompt(const Manifest &manifest, const Tokens &prompt) {
  if (prompt.empty())
    return Error{"the prompt has no tokens, give some with -p, -f or --tokens"};
  auto size = static_cast<int64_t>(prompt.size());
  if (size > manifest.maxSeq)
    return Error{"the prompt has " + std::to_string(size) + " tokens, " +
                 std::to_string(size - manifest.maxSeq) + " more than the context of " +
                 std::to_string(manifest.maxSeq) + " positions, shorten it" +
                 manifest.orLargerContext()};
  return {};
}

Result<GenerateResult> generate(const Model &model, Session &session,
                                const std::vector<Tokens> &prompts, const GenerateOptions &options,
                                GenerateListener &listener) {
  if (Status fits = checkPrompts(model.manifest(), prompts); !fits)
    return fits.error();
  if (options.lookup > 0 && model.manifest().exactRows < 2)
    return Error{"the program computes one row at a time, leave out --lookup or compile it again"};
  for (int64_t s = 0; s < session.sequences(); ++s) {
    session.truncate(s, options.held);
    session.expect(s, std::max(static_cast<int64_t>(prompts[s].size()), options.expected));
  }
  int64_t readBefore = session.readAgain();
  double secondsBefore = session.secondsReadAgain();
  Loop loop(model, session, prompts, options, listener);
  Status done = loop.prefill();
  if (done)
    done = loop.decode();
  if (!done)
    return done.error();
  GenerateResult result = loop.take();
  result.readAgain = session.readAgain() - readBefore;
  result.readAgainSeconds = session.secondsReadAgain() - secondsBefore;
  return result;
}

Result<GenerateResult> generate(const Model &model, const std::vector<Tokens> &prompts,
                                const GenerateOptions &options, GenerateListener &listener) {
  // Before caches are reserved for prompts that cannot be read.
  if (Status fits = checkPrompts(model.manifest(), prompts); !fits)
    return fits.error();
  Result<std::unique_ptr<Session>> session =
      Session::create(model, static_cast<int64_t>(prompts.size()), options.prefillChunk);
  if (!session)
    return session.error();
  return generate(model, **session, prompts, options, listener);
}

} // namespace mica::rt
