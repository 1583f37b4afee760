#include "backends/runtime/engine/SchedulerTask.h"
#include "backends/runtime/support/Seconds.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace mica::rt {

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
  hasCopied = false;
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
  task.admission = admissions++;
  task.listener.started();
  task.queued = static_cast<size_t>(match.reused);
  task.result.reusedTokens = match.reused;
  if (session->keepsCheckpoints())
    task.setCuts(match.reused, match.common);
  rewind(s, match.reused);
  session->setDrafts(static_cast<int64_t>(s), task.maxHeadDrafts > 0);
  if (task.isPrompt()) {
    findSource(s);
    return;
  }
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

/// The time spent so far that does not count as that for prompts or decoding.
double Scheduler::uncountedSeconds() const {
  return session->recomputeSeconds() + session->copySeconds();
}

/// Computes rows of prompts within the row budget of a step. Returns whether there were any.
bool Scheduler::computePrompts() {
  auto start = std::chrono::steady_clock::now();
  double uncounted = uncountedSeconds(), decoded = counted.decodeSeconds;
  int64_t used = 0, maxRows = promptRowsOfStep();
  bool some = false;
  while (std::optional<size_t> slot = promptSlot()) {
    if (used > 0 && used + std::min(slots[*slot].task->remainingPrompt(), maxRows) > maxRows)
      break;
    some = true;
    size_t numPrompts = promptCount();
    queuePrompts(maxRows);
    if (rows.empty())
      break;
    int64_t computed = interruptsPrompts() ? runInterruptible(numPrompts) : run();
    used += computed;
    counted.promptTokens += computed;
    counted.promptCalls += computed > 0;
    if (options.promptsFirst || options.promptsShareCalls)
      break;
  }
  double seconds =
      secondsSince(start) - (uncountedSeconds() - uncounted) - (counted.decodeSeconds - decoded);
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
    if (!task.hasBegun) {
      std::optional<Prefix> prefix = prefixToCopy(*slot);
      // At most one copy in a step: it takes time in addition to that for prompts.
      if (prefix && limitsGaps && hasCopied)
        return;
      task.hasBegun = true;
      if (prefix)
        copyPrefix(*slot, *prefix);
    }
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
  double uncounted = uncountedSeconds();
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
  double seconds = secondsSince(start) - (uncountedSeconds() - uncounted);
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

void Scheduler::end(size_t s, Finish finish) {
  std::unique_ptr<Task> task = std::move(slots[s].task);
  int64_t filled = session->length(static_cast<int64_t>(s)), reusable = reusablePositions(s, *task);
  if (reusable == filled)
    session->takeCheckpoint(static_cast<int64_t>(s));
  slots[s].cached = task->tokensUpTo(filled);
  slots[s].decoded.assign(slots[s].cached.begin() + reusable, slots[s].cached.end());
  slots[s].cached.resize(static_cast<size_t>(reusable));
  // The next turn has another theta.
  if (session->reusableFor(filled + 1, static_cast<int64_t>(s), filled) < filled)
    slots[s].decoded.clear();
  slots[s].promptTokens = task->result.promptTokens;
  slots[s].lastUsed = ++uses;
  replaceSource(s, task->id, reusable);
  task->result.finish = finish;
  task->listener.finished(task->result);
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
