#include "backends/runtime/engine/Scheduler.h"
#include "backends/runtime/support/Seconds.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <new>
#include <utility>

namespace mica::rt {

struct Scheduler::Task {
  Task(SharedRequest shared, RequestListener &listener)
      : common(std::move(shared.common)), request(*common), sharedPrompt(std::move(shared.prompt)),
        prompt(*sharedPrompt), stream(shared.stream), listener(listener),
        maxTokens(request.settings.maxTokens.value_or(GenerationSettings::defaultMaxTokens)),
        maxDrafts(request.settings.lookup.value_or(0)),
        maxHeadDrafts(request.settings.mtp.value_or(0)) {
    result.promptTokens = static_cast<int64_t>(prompt.size());
    result.seed = request.settings.seed ? *request.settings.seed : drawSeed();
  }

  /// Creates what depends on the tokens of the prompt, when the request has got a slot.
  void begin(const Model &model) {
    SamplingOptions options = samplingOptions(request.settings, model.manifest());
    options.seed = result.seed;
    sampler.emplace(options, model.manifest().vocab, stream);
    lookup.emplace(PromptLookup::defaultMinAcceptance(model.weights().size()));
    for (int32_t token : prompt) {
      sampler->observe(token);
      if (maxDrafts > 0)
        lookup->observe(token);
    }
  }

  /// Sets the rows of the prompt after which calls end for the sake of a checkpoint, if `same`
  /// positions of the slot have the prompt's tokens and `reused` of them can be reused: where other
  /// prompts with that beginning diverge, and so close to the end of the prompt that an edit of
  /// its last turn computes at most 512 positions. A request that may not reuse its whole prompt is
  /// not one of a conversation.
  void setCuts(int64_t reused, int64_t same) {
    constexpr int64_t minGain = 64, lastTurn = 448, enough = 512;
    int64_t length = result.promptTokens;
    if (request.maxReused < length)
      return;
    if (same - reused >= minGain)
      cuts.push_back(static_cast<size_t>(same));
    if (length > enough && length - lastTurn > reused)
      cuts.push_back(static_cast<size_t>(length - lastTurn));
  }
  bool isCut(size_t row) const { return std::find(cuts.begin(), cuts.end(), row) != cuts.end(); }

  /// The maximum number of positions of a cache that the request can reuse. The first token is
  /// sampled from the logits of the prompt's last row, unless it is forced.
  int64_t maxReused() const {
    return std::min(request.maxReused, result.promptTokens - request.forcedTokens.empty());
  }
  /// Whether rows of the prompt remain to be queued.
  bool isPrompt() const { return queued < prompt.size(); }
  /// Whether the newest token remains to be computed.
  bool decodes() const { return !isPrompt() && !result.tokens.empty(); }
  int64_t remainingPrompt() const { return static_cast<int64_t>(prompt.size() - queued); }
  int64_t totalLength() const { return std::max(result.promptTokens, request.totalLength); }

  bool endsWith(int32_t token, const std::vector<int32_t> &eos) const {
    auto isIn = [&](const Tokens &ids) {
      return std::find(ids.begin(), ids.end(), token) != ids.end();
    };
    return !request.settings.ignoreEos && (isIn(eos) || isIn(request.settings.endTokens));
  }

  /// The token that follows those generated so far.
  Result<int32_t> next(std::span<const float> logits) {
    const Tokens &forced = request.forcedTokens;
    if (!forced.empty())
      return forced[result.tokens.size() % forced.size()];
    try {
      Result<int32_t> token = sampler->sample(logits);
      if (!token)
        return token;
      Status sampled = listener.sampled(*token, logits);
      return sampled ? token : Result<int32_t>(sampled.error());
    } catch (const std::bad_alloc &) {
      return Error{"out of memory"}; // short enough to take none
    }
  }

  void append(int32_t token) {
    sampler->append(token);
    if (maxDrafts > 0)
      lookup->observe(token);
  }

  /// The tokens of the first `length` positions.
  Tokens tokensUpTo(int64_t length) const {
    Tokens all = prompt;
    all.insert(all.end(), result.tokens.begin(), result.tokens.end());
    all.resize(static_cast<size_t>(length));
    return all;
  }

  RequestId id = 0, leader = 0;
  const std::shared_ptr<const Request> common;
  const Request &request; ///< `*common`, without its prompt and its stream
  const std::shared_ptr<const Tokens> sharedPrompt;
  const Tokens &prompt;
  const uint64_t stream;
  RequestListener &listener;
  int64_t maxTokens, maxDrafts, maxHeadDrafts;
  std::optional<PromptLookup> lookup; ///< from `begin` on, as the sampler
  std::optional<Sampler> sampler;
  RequestResult result;
  uint64_t order = 0;    ///< the prompt in progress with the lowest number is next
  size_t queued = 0;     ///< positions of the prompt that are cached or queued
  bool hasBegun = false; ///< rows of the prompt have been queued
  std::vector<size_t> cuts;
  Tokens draft;          ///< drafted tokens queued after the newest token
  bool isByHead = false; ///< whether the multi-token prediction head has drafted them
};

Scheduler::Totals Scheduler::Totals::operator-(const Totals &before) const {
  return {promptTokens - before.promptTokens,
          joinedTokens - before.joinedTokens,
          decodeTokens - before.decodeTokens,
          promptCalls - before.promptCalls,
          decodeCalls - before.decodeCalls,
          interruptions - before.interruptions,
          drafted - before.drafted,
          accepted - before.accepted,
          recomputedTokens - before.recomputedTokens,
          recomputedAnswerTokens - before.recomputedAnswerTokens,
          copiedTokens - before.copiedTokens,
          promptSeconds - before.promptSeconds,
          decodeSeconds - before.decodeSeconds,
          recomputeSeconds - before.recomputeSeconds};
}

Scheduler::Scheduler(const Model &model, const Options &options, std::unique_ptr<Session> session)
    : loaded(model), options(options), session(std::move(session)),
      slots(static_cast<size_t>(options.slots)), budget(options.promptRows),
      answerBudget(options.promptRows) {}

Scheduler::~Scheduler() = default;

Result<std::unique_ptr<Scheduler>> Scheduler::create(const Model &model, const Options &options) {
  Result<std::unique_ptr<Session>> session =
      Session::create(model, options.slots, options.promptRows, options.checkpointBytes);
  if (!session)
    return session.error();
  return std::unique_ptr<Scheduler>(new Scheduler(model, options, *std::move(session)));
}

Result<Scheduler::RequestId> Scheduler::submit(Request request, RequestListener &listener,
                                               std::optional<RequestId> leader) {
  if (Status usable = checkRequest(loaded.manifest(), request); !usable)
    return usable.error();
  auto own = std::make_shared<const Request>(std::move(request));
  return submit(SharedRequest{own, {own, &own->prompt}, own->stream}, listener, leader);
}

Scheduler::RequestId Scheduler::submit(SharedRequest request, RequestListener &listener,
                                       std::optional<RequestId> leader) {
  auto task = std::make_unique<Task>(std::move(request), listener);
  std::lock_guard lock(inbox.mutex);
  task->id = inbox.next++;
  task->leader = leader.value_or(task->id);
  inbox.submitted.push_back(std::move(task));
  return inbox.submitted.back()->id;
}

void Scheduler::cancel(RequestId id) {
  std::lock_guard lock(inbox.mutex);
  inbox.canceled.insert(id);
}

Scheduler::Totals Scheduler::totals() const {
  Totals all = counted;
  all.recomputedTokens = session->recomputedTokens();
  all.recomputeSeconds = session->recomputeSeconds();
  return all;
}

bool Scheduler::step() {
  receive();
  if (options.promptsFirst) {
    if (!computePrompts())
      decode();
  } else {
    decode();
    if (!promptsAreDone)
      computePrompts();
  }
  std::lock_guard lock(inbox.mutex);
  return !waiting.empty() || !inbox.submitted.empty() ||
         std::any_of(slots.begin(), slots.end(), [](const Slot &slot) { return !!slot.task; });
}

/// Takes requests and cancellations from the inbox.
void Scheduler::receive() {
  std::vector<std::unique_ptr<Task>> submitted;
  std::unordered_set<RequestId> canceled;
  {
    std::lock_guard lock(inbox.mutex);
    submitted.swap(inbox.submitted);
    canceled.swap(inbox.canceled);
  }
  for (std::unique_ptr<Task> &task : submitted) {
    RequestId id = task->id, leader = task->leader;
    if (leader == id)
      waiting.add(id, std::move(task));
    else
      waiting.addTo(leader, std::move(task));
  }
  if (canceled.empty())
    return;
  auto isCanceled = [&](const std::unique_ptr<Task> &task) {
    return task && canceled.contains(task->id);
  };
  waiting.removeIf(isCanceled, [](const std::unique_ptr<Task> &task) {
    task->result.finish = Finish::Canceled;
    task->listener.finished(task->result);
  });
  for (size_t s = 0; s < slots.size(); ++s)
    if (isCanceled(slots[s].task)) {
      if (!slots[s].isBusy) {
        end(s, Finish::Canceled);
        continue;
      }
      std::lock_guard lock(inbox.mutex);
      inbox.canceled.insert(slots[s].task->id);
    }
}

bool Scheduler::isWanted(const Task &task) {
  {
    std::lock_guard lock(inbox.mutex);
    if (inbox.canceled.contains(task.id))
      return false;
  }
  return task.listener.shouldContinue();
}

/// A slot for a request.
struct Scheduler::Match {
  size_t slot = 0;
  int64_t same = 0;   ///< positions with the same tokens
  int64_t reused = 0; ///< of them, those that the session can reuse
};

/// The number of positions at the beginning of the prompt of slot `s` that are computed, but not
/// necessarily stored.
int64_t Scheduler::computedPrompt(size_t s) const {
  auto ofSlot = [&](const Row &row) { return row.slot == s; };
  int64_t computed =
      session->length(static_cast<int64_t>(s)) - std::count_if(rows.begin(), rows.end(), ofSlot);
  return std::min(computed, slots[s].task->result.promptTokens);
}

/// The number of positions at the beginning of a prompt that are the same as in slot `s`, and may
/// be reused: of a request in progress, those of its prompt.
int64_t Scheduler::samePositions(const Task &task, size_t s) const {
  const Task *other = slots[s].task.get();
  std::span<const int32_t> known(other ? other->prompt : slots[s].cached);
  if (other)
    known = known.first(static_cast<size_t>(computedPrompt(s)));
  auto end = task.prompt.begin() + task.maxReused();
  return std::mismatch(task.prompt.begin(), end, known.begin(), known.end()).first -
         task.prompt.begin();
}

/// The minimum number of positions that are worth a copy.
static constexpr int64_t kMinCopied = 32;

/// Copies the beginning of a prompt from another slot, if that has more of it than the prompt's own
/// slot: of another completion of the same prompt, or of a system prompt.
void Scheduler::copyPrefix(size_t s) {
  Task &task = *slots[s].task;
  int64_t own = task.result.reusedTokens, best = own + kMinCopied - 1;
  std::optional<size_t> from;
  for (size_t other = 0; other < slots.size(); ++other) {
    if (other == s || slots[other].isBusy)
      continue;
    int64_t same = samePositions(task, other);
    if (same > best && same < task.result.promptTokens &&
        session->canCopy(static_cast<int64_t>(other), same)) {
      best = same;
      from = other;
    }
  }
  if (!from)
    return;
  auto sequence = static_cast<int64_t>(s);
  session->copy(static_cast<int64_t>(*from), sequence, best);
  session->setTotalLength(sequence, task.totalLength());
  task.queued = static_cast<size_t>(best);
  task.result.reusedTokens = best;
  counted.copiedTokens += best - own;
}

/// Whether an earlier completion of the same prompt computes it, from which it can be copied.
bool Scheduler::waitsForCopy(size_t s) const {
  const Task &task = *slots[s].task;
  if (task.hasBegun || task.maxReused() - task.result.reusedTokens < kMinCopied ||
      loaded.manifest().ranks > 1)
    return false;
  for (size_t other = 0; other < slots.size(); ++other)
    if (const Task *earlier = slots[other].task.get(); earlier && earlier->id < task.id &&
                                                       earlier->sharedPrompt == task.sharedPrompt &&
                                                       computedPrompt(other) < task.maxReused())
      return true;
  return false;
}

/// The free slot for a request: the one with most reusable positions, among those whose last prompt
/// the request begins with (the next turn, or the same prompt again), and those of whose cached
/// positions it reuses at least half. A prefix that many prompts share (a system prompt) is less
/// than that and does not cost another conversation its cache. If there is none, the least recently
/// used slot, which may be one that was never used.
std::optional<Scheduler::Match> Scheduler::freeSlot(const Task &task) const {
  std::optional<Match> best;
  int64_t bestContinued = 0;
  for (size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].task)
      continue;
    int64_t same = samePositions(task, s),
            reused = session->rewindable(static_cast<int64_t>(s), same);
    auto filled = static_cast<int64_t>(slots[s].cached.size() + slots[s].decoded.size());
    // The last token of a prompt that is given again is computed for its logits.
    bool continues = same + 1 >= slots[s].promptTokens || reused >= filled - reused;
    int64_t continued = continues ? reused : 0;
    if (!best || continued > bestContinued ||
        (continued == bestContinued && slots[s].lastUsed < slots[best->slot].lastUsed)) {
      best = {s, same, reused};
      bestContinued = continued;
    }
  }
  return best;
}

/// Assigns a slot to the next waiting request. Returns false if none is waiting or no slot is
/// free.
bool Scheduler::admitNext() {
  if (waiting.empty())
    return false;
  std::optional<Match> free = freeSlot(*waiting.front());
  if (!free)
    return false;
  admit(*free, waiting.pop());
  return true;
}

void Scheduler::admit(const Match &match, std::unique_ptr<Task> admitted) {
  size_t s = match.slot;
  slots[s] = Slot();
  slots[s].task = std::move(admitted);
  Task &task = *slots[s].task;
  task.begin(loaded);
  task.order = nextOrder++;
  task.listener.started();
  task.queued = static_cast<size_t>(match.reused);
  task.result.reusedTokens = match.reused;
  if (session->keepsCheckpoints())
    task.setCuts(match.reused, match.same);
  rewind(s, match.reused);
  session->setDrafts(static_cast<int64_t>(s), task.maxHeadDrafts > 0);
  if (task.isPrompt())
    return;
  if (task.maxTokens == 0)
    end(s, Finish::Length);
  else
    accept(s, task.request.forcedTokens.front(), {}, 0);
}

/// The slot of the prompt that is computed next. With promptsFirst, a waiting request gets a slot
/// only if no prompt has begun, so that at most one prompt is in progress between calls; otherwise
/// as soon as one is free, so that a long prompt does not delay later ones.
std::optional<size_t> Scheduler::promptSlot() {
  for (;;) {
    while (!options.promptsFirst && admitNext()) {
    }
    std::optional<size_t> next;
    for (size_t s = 0; s < slots.size(); ++s)
      if (slots[s].task && slots[s].task->isPrompt() &&
          (!next || slots[s].task->order < slots[*next].task->order) && !waitsForCopy(s))
        next = s;
    if (next || !admitNext())
      return next;
  }
}

/// Computes rows of prompts within the row budget of a step. Returns whether there were any.
bool Scheduler::computePrompts() {
  auto start = std::chrono::steady_clock::now();
  double recomputed = session->recomputeSeconds(), decoded = counted.decodeSeconds;
  int64_t used = 0, maxRows = promptRowsOfStep();
  bool some = false;
  while (std::optional<size_t> slot = promptSlot()) {
    if (used > 0 && used + std::min(slots[*slot].task->remainingPrompt(), maxRows) > maxRows)
      break;
    some = true;
    size_t numPrompts = promptCount();
    queuePrompts(maxRows);
    int64_t computed = interruptsPrompts() ? runInterruptible(numPrompts) : run();
    used += computed;
    counted.promptTokens += computed;
    counted.promptCalls += computed > 0;
    if (options.promptsFirst || options.promptsShareCalls)
      break;
  }
  double seconds = secondsSince(start) - (session->recomputeSeconds() - recomputed) -
                   (counted.decodeSeconds - decoded);
  counted.promptSeconds += seconds;
  if (numDecoding > 0)
    budget.addPrompt(used, seconds);
  return some;
}

/// Whether the current step decodes between the kernels of calls for prompts.
bool Scheduler::interruptsPrompts() const {
  return limitsGaps && !options.promptsFirst && !joinsPrompts() && session->canInterrupt();
}

/// Computes the queued rows of prompts. Before a kernel, decodes if the time for the `numPrompts`
/// prompts is up. Returns the number of rows of prompts.
int64_t Scheduler::runInterruptible(size_t numPrompts) {
  if (!prepare())
    return 0;
  using Clock = std::chrono::steady_clock;
  Clock::time_point decoded = Clock::now(), before = decoded;
  double longest = 0; // time between two kernels
  std::exception_ptr failure;
  int64_t computed = runPrepared([&] {
    Clock::time_point now = Clock::now();
    auto secondsFrom = [&](Clock::time_point time) {
      return std::chrono::duration<double>(now - time).count();
    };
    longest = std::max(longest, secondsFrom(before));
    before = now;
    if (failure || !limitsGaps)
      return;
    // If the next kernel is one of the longest, the time is exceeded, or not used, by at most half
    // of it. One that takes longer than that must not cost prompts their time.
    double budgeted = budget.seconds(numDecoding, numPrompts);
    if (secondsFrom(decoded) + std::min(longest, budgeted) / 2 < budgeted)
      return;
    int64_t calls = counted.decodeCalls;
    try {
      receive();
      decode();
    } catch (...) {
      failure = std::current_exception();
    }
    counted.interruptions += counted.decodeCalls - calls;
    decoded = before = Clock::now();
  });
  if (failure)
    std::rethrow_exception(failure);
  return computed;
}

/// The number of prompts in progress and of those that wait and can have a slot.
size_t Scheduler::promptCount() const {
  size_t numPrompts = 0, free = 0;
  for (size_t s = 0; s < slots.size(); ++s)
    if (!slots[s].task)
      ++free;
    else if (slots[s].task->isPrompt() && !waitsForCopy(s))
      ++numPrompts;
  return numPrompts + std::min(free, waiting.size());
}

/// The maximum number of rows of prompts in the current step.
int64_t Scheduler::promptRowsOfStep() const {
  if (!limitsGaps)
    return options.promptRows;
  if (interruptsPrompts())
    return budget.interruptibleRows();
  return budget.rows(numDecoding, promptCount(), joinsPrompts());
}

/// Queues rows of the next prompt until the call has `maxRows` rows, and of the following ones if
/// they may share a call. Requests that are no longer wanted end.
void Scheduler::queuePrompts(int64_t maxRows) {
  while (std::optional<size_t> slot = promptSlot()) {
    Task &task = *slots[*slot].task;
    if (!isWanted(task)) {
      end(*slot, Finish::Canceled);
      continue;
    }
    if (!std::exchange(task.hasBegun, true))
      copyPrefix(*slot);
    if (!options.promptsFirst)
      task.order = nextOrder++;
    if (!queuePrompt(*slot, maxRows) || !options.promptsShareCalls)
      return;
  }
}

/// Queues rows of a prompt until the call has `maxRows` rows. Returns false if it has no room for
/// more.
bool Scheduler::queuePrompt(size_t s, int64_t maxRows) {
  Task &task = *slots[s].task;
  while (task.isPrompt()) {
    int32_t token = task.prompt[task.queued++];
    bool last = !task.isPrompt(), sample = last && task.maxTokens > 0,
         cut = task.isCut(task.queued);
    Row row{s, token, RowRole::Prompt, sample || task.request.allLogits, sample, last && !sample};
    row.checkpoint = last || cut;
    if (!queue(row))
      return false;
    if (session->isFull() || cut || static_cast<int64_t>(rows.size()) >= maxRows)
      return false;
  }
  return true;
}

/// Computes one or more tokens for each text in progress.
void Scheduler::decode() {
  auto decodes = [](const Slot &slot) { return slot.task && slot.task->decodes(); };
  int64_t active = std::count_if(slots.begin(), slots.end(), decodes);
  numDecoding = static_cast<size_t>(active);
  limitsGaps = std::ranges::any_of(
      slots, [&](const Slot &slot) { return decodes(slot) && slot.task->request.limitGaps; });
  promptsAreDone = false;
  if (active == 0)
    return;
  auto start = std::chrono::steady_clock::now();
  double recomputed = session->recomputeSeconds();
  // With more rows, the arithmetic of a row might depend on their number.
  int64_t maxDrafts = loaded.manifest().batchInvariantRows / active - 1;
  if (Status drafted = draft(maxDrafts); !drafted) {
    for (size_t s = 0; s < slots.size(); ++s)
      if (decodes(slots[s]))
        fail(s, drafted.error());
    return;
  }
  for (size_t s = 0; s < slots.size(); ++s) {
    if (session->atMemoryLimit())
      runDecode();
    if (decodes(slots[s]) && !queueNewest(s))
      break;
  }
  auto numDecoded = static_cast<int64_t>(rows.size());
  // Otherwise prompts have calls of their own: a call that is nearly full has no room for them.
  promptsAreDone = joinsPrompts() && numDecoded > 0 && !session->atMemoryLimit() &&
                   numDecoded + PromptBudget::minRows <= options.promptRows;
  if (promptsAreDone && (!limitsGaps || budget.knowsDecode(numDecoding)))
    queuePrompts(numDecoded + promptRowsOfStep());
  int64_t numJoined = static_cast<int64_t>(rows.size()) - numDecoded;
  if (runDecode() == 0)
    return;
  double seconds = secondsSince(start) - (session->recomputeSeconds() - recomputed);
  if (numJoined == 0) {
    counted.decodeSeconds += seconds;
    budget.addDecode(numDecoding, seconds);
    return;
  }
  counted.promptTokens += numJoined;
  counted.joinedTokens += numJoined;
  double promptShare = static_cast<double>(numJoined) / static_cast<double>(numDecoded + numJoined);
  counted.promptSeconds += seconds * promptShare;
  counted.decodeSeconds += seconds * (1 - promptShare);
  budget.addJoined(numDecoding, numDecoded, numJoined, seconds);
}

bool Scheduler::joinsPrompts() const {
  return options.promptsJoinDecode && !options.promptsFirst && !loaded.manifest().dependsOnRole;
}

/// Computes the queued rows. Returns their number.
int64_t Scheduler::runDecode() {
  int64_t computed = run();
  counted.decodeCalls += computed > 0;
  return computed;
}

/// Drafts tokens after the newest one of each text in progress, at most `maxDrafts` for each: by
/// prompt lookup, which costs nothing, else by the multi-token prediction head. Nothing is drafted
/// beyond the last token, the end of the context or a rope length threshold.
Status Scheduler::draft(int64_t maxDrafts) {
  std::vector<Session::DraftRequest> requests;
  for (size_t s = 0; s < slots.size(); ++s) {
    if (!slots[s].task || !slots[s].task->decodes())
      continue;
    Task &task = *slots[s].task;
    auto sequence = static_cast<int64_t>(s);
    auto made = static_cast<int64_t>(task.result.tokens.size());
    int64_t limit = std::min({maxDrafts, task.maxTokens - made - 1, session->room(sequence) - 1,
                              session->positionsUntilThreshold(sequence) - 1});
    if (int64_t found = std::min(limit, task.maxDrafts); found > 0)
      task.draft = task.lookup->draft(found);
    task.isByHead = task.draft.empty();
    if (int64_t predicted = std::min(limit, task.maxHeadDrafts); task.isByHead && predicted > 0)
      requests.push_back({sequence, task.result.tokens.back(), predicted});
  }
  if (requests.empty())
    return {};
  Result<std::vector<Tokens>> drafts = session->draft(requests);
  if (!drafts)
    return drafts.error();
  for (size_t i = 0; i < requests.size(); ++i)
    slots[static_cast<size_t>(requests[i].sequence)].task->draft = std::move((*drafts)[i]);
  return {};
}

/// Queues the newest token of a text and what has been drafted after it. Returns false on failure.
bool Scheduler::queueNewest(size_t s) {
  Task &task = *slots[s].task;
  auto numDrafts = static_cast<int64_t>(task.draft.size());
  Row row{s, task.result.tokens.back(), RowRole::Decode, true, true, false, numDrafts};
  if (!queue(row))
    return false;
  for (int32_t token : task.draft) {
    row.token = token;
    --row.numDrafts;
    if (!queue(row))
      return false;
  }
  return true;
}

bool Scheduler::queue(const Row &row) {
  rows.push_back(row);
  Status pushed = session->add(static_cast<int64_t>(row.slot), row.token, row.role, row.logits);
  if (!pushed)
    failQueued(pushed.error());
  return bool(pushed);
}

/// Discards all positions of a slot except the first `length`; returns whether the session kept
/// these, as Session::rewindable tells.
bool Scheduler::rewind(size_t s, int64_t length) {
  int64_t kept = session->rewind(static_cast<int64_t>(s), length);
  session->setTotalLength(static_cast<int64_t>(s), slots[s].task->totalLength());
  return kept == length;
}

/// Prepares the session for the queued rows; requests that are canceled while their positions are
/// recomputed end. Returns false if no rows are left.
bool Scheduler::prepare() {
  while (!rows.empty()) {
    std::optional<size_t> unwanted;
    Result<bool> prepared = session->prepare([&](int64_t sequence) {
      auto s = static_cast<size_t>(sequence);
      bool wanted = isWanted(*slots[s].task);
      if (!wanted)
        unwanted = s;
      return wanted;
    });
    if (!prepared) {
      failQueued(prepared.error());
      return false;
    }
    if (*prepared)
      return true;
    // The session has discarded the rows of all requests.
    std::vector<Row> others = std::exchange(rows, {});
    std::erase_if(others, [&](const Row &row) { return row.slot == *unwanted; });
    end(*unwanted, Finish::Canceled);
    for (const Row &row : others)
      rewind(row.slot, session->length(static_cast<int64_t>(row.slot)));
    for (const Row &row : others)
      if (!queue(row))
        return false;
  }
  return false;
}

/// Computes the queued rows and passes on their logits. Returns the number of rows.
int64_t Scheduler::run() { return prepare() ? runPrepared({}) : 0; }

/// The same for rows that have been prepared. `beforeKernels`: see Session::decode.
int64_t Scheduler::runPrepared(const Session::BeforeKernels &beforeKernels) {
  std::vector<Row> computed = std::exchange(rows, {}); // the function may queue others
  auto setBusy = [&](bool busy) {
    for (const Row &row : computed)
      slots[row.slot].isBusy = busy;
  };
  setBusy(true);
  Result<std::span<const float>> logits = session->decode(beforeKernels);
  setBusy(false);
  if (Status readable = loaded.checkReadable(); logits && !readable)
    logits = readable.error();
  if (!logits) {
    rows = std::move(computed);
    failQueued(logits.error());
    return 0;
  }
  notifyListeners(computed, *logits);
  return static_cast<int64_t>(computed.size());
}

/// Samples the token that follows each request's first row to sample from, by slot, on the threads
/// of the pool: every request has its own sampler. Tokens after drafted rows are sampled later,
/// since they depend on it.
std::vector<std::optional<Result<int32_t>>>
Scheduler::sampleFirst(const std::vector<Row> &computed,
                       const std::vector<std::span<const float>> &logits) {
  std::vector<std::optional<Result<int32_t>>> tokens(slots.size());
  std::vector<size_t> firstRows;
  std::vector<bool> seen(slots.size());
  for (size_t i = 0; i < computed.size(); ++i)
    if (computed[i].sample && !seen[computed[i].slot]) {
      seen[computed[i].slot] = true;
      firstRows.push_back(i);
    }
  // A profile attributes the work of the pool to kernels.
  if (firstRows.size() < 2 || loaded.runtime().profile())
    return tokens;
  forEachTask(loaded.runtime().pool(), static_cast<int64_t>(firstRows.size()), [&](int64_t task) {
    size_t row = firstRows[static_cast<size_t>(task)], slot = computed[row].slot;
    tokens[slot] = slots[slot].task->next(logits[row]);
  });
  return tokens;
}

void Scheduler::notifyListeners(const std::vector<Row> &computed, std::span<const float> logits) {
  auto vocab = static_cast<size_t>(loaded.manifest().vocab);
  std::vector<std::span<const float>> logitsByRow(computed.size());
  for (size_t i = 0, output = 0; i < computed.size(); ++i)
    if (computed[i].logits)
      logitsByRow[i] = logits.subspan(output++ * vocab, vocab);
  std::vector<std::optional<Result<int32_t>>> sampled = sampleFirst(computed, logitsByRow);
  for (size_t i = 0; i < computed.size(); ++i) {
    const Row &row = computed[i];
    std::span<const float> own = logitsByRow[i];
    // An earlier row may have ended the text.
    Task *task = slots[row.slot].task.get();
    if (!task)
      continue;
    if (row.checkpoint)
      session->takeCheckpoint(static_cast<int64_t>(row.slot));
    if (task->request.allLogits)
      if (Status status = task->listener.logits(own); !status) {
        fail(row.slot, status.error());
        continue;
      }
    if (row.ends)
      end(row.slot, Finish::Length);
    else if (row.sample && !choose(row, own, std::exchange(sampled[row.slot], {})))
      i += static_cast<size_t>(row.numDrafts); // the drafted rows have been discarded
  }
}

/// Chooses the token that follows a row: `sampled`, or else it is sampled now. Returns whether the
/// drafted row after it has that token.
bool Scheduler::choose(const Row &row, std::span<const float> logits,
                       std::optional<Result<int32_t>> sampled) {
  counted.decodeTokens += row.role == RowRole::Decode;
  Result<int32_t> token = sampled ? *std::move(sampled) : slots[row.slot].task->next(logits);
  if (token)
    return accept(row.slot, *token, logits, row.numDrafts);
  fail(row.slot, token.error());
  return false;
}

/// Appends `token` to the text of a slot; `numDrafts` drafted rows follow the row that it was
/// sampled from. Returns whether the first of these has that token and the text is not finished;
/// otherwise they are discarded.
bool Scheduler::accept(size_t s, int32_t token, std::span<const float> logits, int64_t numDrafts) {
  Task &task = *slots[s].task;
  task.result.tokens.push_back(token);
  std::optional<Finish> finish =
      finishAfter(task, token, session->room(static_cast<int64_t>(s)) + numDrafts);
  Result<bool> wanted = task.listener.token(token, logits);
  if (!wanted) {
    fail(s, wanted.error());
    return false;
  }
  if (!*wanted && finish != Finish::EndToken)
    finish = Finish::StopSequence;
  auto right = static_cast<int64_t>(task.draft.size()) - numDrafts;
  bool same = numDrafts > 0 && task.draft[static_cast<size_t>(right)] == token;
  if (same && !finish) {
    task.append(token);
    return true;
  }
  if (numDrafts > 0 && !rewind(s, session->length(static_cast<int64_t>(s)) - numDrafts)) {
    fail(s, Error{"the program does not keep the positions before a rejected draft; generate "
                  "without drafts"});
    return false;
  }
  acceptDraft(task, right + same);
  if (finish)
    end(s, *finish);
  else
    task.append(token);
  return false;
}

/// Whether and how the text ends with `token`, if `room` positions are free after the row that it
/// was sampled from.
std::optional<Finish> Scheduler::finishAfter(const Task &task, int32_t token, int64_t room) const {
  if (task.endsWith(token, loaded.manifest().eos))
    return Finish::EndToken;
  if (static_cast<int64_t>(task.result.tokens.size()) >= task.maxTokens)
    return Finish::Length;
  if (room == 0)
    return Finish::ContextFull;
  return std::nullopt;
}

/// Records that the first `right` tokens of the draft were accepted.
void Scheduler::acceptDraft(Task &task, int64_t right) {
  auto drafted = static_cast<int64_t>(task.draft.size());
  if (!task.isByHead)
    task.lookup->learn(drafted, right);
  task.draft.clear();
  task.result.drafted += drafted;
  task.result.accepted += right;
  counted.drafted += drafted;
  counted.accepted += right;
}

/// The number of positions of a text that another request's prompt may reuse: those with the values
/// that prefill would compute. If the arithmetic depends on the role of a row, this excludes the
/// positions of an answer.
int64_t Scheduler::reusablePositions(size_t s, const Task &task) const {
  int64_t filled = session->length(static_cast<int64_t>(s));
  return loaded.manifest().dependsOnRole ? std::min(filled, task.result.promptTokens) : filled;
}

void Scheduler::end(size_t s, Finish finish) {
  std::unique_ptr<Task> task = std::move(slots[s].task);
  int64_t filled = session->length(static_cast<int64_t>(s)), reusable = reusablePositions(s, *task);
  if (reusable == filled)
    session->takeCheckpoint(static_cast<int64_t>(s));
  slots[s].cached = task->tokensUpTo(filled);
  slots[s].decoded.assign(slots[s].cached.begin() + reusable, slots[s].cached.end());
  slots[s].cached.resize(static_cast<size_t>(reusable));
  slots[s].promptTokens = task->result.promptTokens;
  slots[s].lastUsed = ++uses;
  task->result.finish = finish;
  task->listener.finished(task->result);
}

/// The free slot with an answer to recompute that was used last.
std::optional<size_t> Scheduler::slotToRecompute() const {
  std::optional<size_t> last;
  for (size_t s = 0; s < slots.size(); ++s)
    if (!slots[s].task && !slots[s].decoded.empty() &&
        (!last || slots[s].lastUsed > slots[*last].lastUsed))
      last = s;
  return last;
}

bool Scheduler::recomputeAnswers() {
  assert(rows.empty() && "between steps");
  std::optional<size_t> s = slotToRecompute();
  if (!s)
    return false;
  auto start = std::chrono::steady_clock::now();
  Slot &slot = slots[*s];
  auto sequence = static_cast<int64_t>(*s), begin = static_cast<int64_t>(slot.cached.size());
  if (session->length(sequence) > begin) {
    // Recurrent states may have to continue at an earlier checkpoint. A whole conversation is not
    // recomputed for a turn that may never come.
    constexpr int64_t maxLost = 512;
    if (begin - session->rewindable(sequence, begin) > maxLost) {
      slot.decoded.clear();
      return slotToRecompute().has_value();
    }
    auto kept = slot.cached.begin() + session->rewind(sequence, begin);
    slot.decoded.insert(slot.decoded.begin(), kept, slot.cached.end());
    slot.cached.erase(kept, slot.cached.end());
  }
  int64_t wanted = answerBudget.interruptibleRows(),
          count = std::min(static_cast<int64_t>(slot.decoded.size()), wanted);
  if (Status done = recomputeAsPrompt(*s, count); !done) {
    // A request that needs the model fails with this error as well.
    session->discardQueued();
    session->rewind(sequence, 0);
    slot.cached.clear();
    slot.decoded.clear();
    return slotToRecompute().has_value();
  }
  auto end = slot.decoded.begin() + count;
  slot.cached.insert(slot.cached.end(), slot.decoded.begin(), end);
  slot.decoded.erase(slot.decoded.begin(), end);
  if (slot.decoded.empty())
    session->takeCheckpoint(sequence);
  // The rest of an answer takes more time per row.
  if (count == wanted)
    answerBudget.addPrompt(count, secondsSince(start));
  counted.recomputedAnswerTokens += count;
  return slotToRecompute().has_value();
}

/// Computes the first `count` positions of an answer as those of a prompt.
Status Scheduler::recomputeAsPrompt(size_t s, int64_t count) {
  const Slot &slot = slots[s];
  auto sequence = static_cast<int64_t>(s);
  session->setTotalLength(sequence, static_cast<int64_t>(slot.cached.size() + slot.decoded.size()));
  for (int64_t i = 0; i < count; ++i)
    if (Status added = session->add(sequence, slot.decoded[static_cast<size_t>(i)], RowRole::Prompt,
                                    /*wantLogits=*/false);
        !added)
      return added;
  if (Result<std::span<const float>> computed = session->decode(); !computed)
    return computed.error();
  return loaded.checkReadable();
}

/// Fails the request of a slot and discards the slot's cache.
void Scheduler::fail(size_t s, const Error &error) {
  session->rewind(static_cast<int64_t>(s), 0);
  slots[s].task->result.error = error;
  end(s, Finish::Failed);
}

/// Fails all requests that have queued rows.
void Scheduler::failQueued(const Error &error) {
  session->discardQueued();
  for (const Row &row : std::exchange(rows, {}))
    if (slots[row.slot].task)
      fail(row.slot, error);
}

} // namespace mica::rt
