// What a prompt reuses of what was computed before: of the same slot, or copied from another one.
#include "backends/runtime/engine/SchedulerTask.h"
#include "backends/runtime/support/Seconds.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace mica::rt {

/// The length of the prefix of the prompt of slot `s` that is computed, but not necessarily stored.
int64_t Scheduler::computedPrompt(size_t s) const {
  auto ofSlot = [&](const Row &row) { return row.slot == s; };
  int64_t computed =
      session->length(static_cast<int64_t>(s)) - std::count_if(rows.begin(), rows.end(), ofSlot);
  return std::min(computed, slots[s].task->result.promptTokens);
}

/// The length of the prefix that a prompt has in common with slot `s`, and may reuse: with a
/// request in progress, of its prompt.
int64_t Scheduler::commonPrefix(const Task &task, size_t s) const {
  const Task *other = slots[s].task.get();
  std::span<const int32_t> known(other ? other->prompt : slots[s].cached);
  if (other)
    known = known.first(static_cast<size_t>(computedPrompt(s)));
  return session->reusableFor(task.totalLength(), static_cast<int64_t>(s),
                              task.commonPrefix(known));
}

/// The minimum number of positions that are worth a copy. States of fixed size are copied as a
/// whole, whatever the number, but computing so many reads all weights, which are several times as
/// large.
static constexpr int64_t kMinCopied = 32;

/// The length of the prefix that a prompt has in common with that of an earlier request in slot
/// `s`, if it is worth waiting until that has computed it; else 0.
int64_t Scheduler::awaitedPositions(const Task &task, size_t s) const {
  const Task *earlier = slots[s].task.get();
  if (!earlier || earlier->admission >= task.admission ||
      !session->haveSameFrequencies(earlier->totalLength(), task.totalLength()))
    return 0;
  // The last row of a prompt is always computed.
  int64_t common = earlier->sharedPrompt == task.sharedPrompt ? task.maxReused()
                                                              : task.commonPrefix(earlier->prompt);
  common = std::min(common, task.result.promptTokens - 1);
  int64_t saved = common - task.result.reusedTokens, computed = computedPrompt(s);
  bool isWorthIt = saved >= kMinCopied && common - computed <= 2 * saved;
  return computed < common && isWorthIt ? common : 0;
}

/// Finds the earlier request in progress that will have computed most of a new prompt: another
/// completion of the same prompt, or one with the same system prompt.
void Scheduler::findSource(size_t s) {
  Task &task = *slots[s].task;
  task.source.reset();
  if (loaded.manifest().ranks > 1)
    return;
  int64_t longest = 0;
  for (size_t other = 0; other < slots.size(); ++other)
    if (int64_t positions = awaitedPositions(task, other); positions > longest) {
      longest = positions;
      task.source = {{other, positions}, slots[other].task->id};
    }
  auto isState = [](const CacheSpec &cache) { return cache.slots > 0; };
  if (!task.source || std::ranges::none_of(loaded.manifest().caches, isState))
    return;
  // States can be copied until this many further positions have been computed; a few of them may be
  // decoded before the copy.
  constexpr int64_t maxFurther = 16;
  if (Task &earlier = *slots[task.source->slot].task;
      earlier.result.promptTokens - longest > maxFurther)
    earlier.cuts.push_back(static_cast<size_t>(longest));
}

/// Other requests wait for a prefix from slot `s`, whose request `id` has ended after `computed`
/// positions: they take it from the next one.
void Scheduler::replaceSource(size_t s, RequestId id, int64_t computed) {
  for (size_t other = 0; other < slots.size(); ++other)
    if (const Task *task = slots[other].task.get();
        task && !task->hasBegun && task->source && task->source->slot == s &&
        task->source->id == id && task->source->positions > computed)
      findSource(other);
}

/// The slot that has most of a prompt and from which that can be copied, if it is more than the
/// prompt's own slot has.
std::optional<Scheduler::Prefix> Scheduler::prefixToCopy(size_t s) const {
  const Task &task = *slots[s].task;
  std::optional<Prefix> longest;
  int64_t minimum = task.result.reusedTokens + kMinCopied;
  for (size_t other = 0; other < slots.size(); ++other) {
    if (other == s || slots[other].isBusy)
      continue;
    int64_t common = std::min(commonPrefix(task, other), task.result.promptTokens - 1);
    if (common >= minimum &&
        session->canCopy(static_cast<int64_t>(other), common, task.totalLength())) {
      minimum = common + 1;
      longest = {other, common};
    }
  }
  return longest;
}

void Scheduler::copyPrefix(size_t s, const Prefix &prefix) {
  Task &task = *slots[s].task;
  auto sequence = static_cast<int64_t>(s);
  session->copy(static_cast<int64_t>(prefix.slot), sequence, prefix.positions);
  session->setTotalLength(sequence, task.totalLength());
  counted.copiedTokens += prefix.positions - task.result.reusedTokens;
  task.queued = static_cast<size_t>(prefix.positions);
  task.result.reusedTokens = prefix.positions;
  hasCopied = true;
}

/// Whether the prefix of a prompt is still being computed in the slot that it is copied from.
/// Requests wait only for those that were admitted before them, so never for each other.
bool Scheduler::waitsForCopy(size_t s) const {
  const std::optional<Task::Source> &source = slots[s].task->source;
  if (!source)
    return false;
  const Task *earlier = slots[source->slot].task.get();
  return earlier && earlier->id == source->id && computedPrompt(source->slot) < source->positions;
}

/// The free slot for a request: the one with most reusable positions, among those whose last prompt
/// the request begins with (the next turn, or the same prompt again), and those of whose cached
/// positions it reuses at least half. A prefix that many prompts share (a system prompt) is less
/// than that and does not cost another conversation its cache. If there is none, the least recently
/// used slot, which may be one that was never used.
std::optional<Scheduler::Match> Scheduler::freeSlot(const Task &task) const {
  std::optional<Match> match;
  int64_t longest = 0;
  for (size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].task)
      continue;
    int64_t common = commonPrefix(task, s),
            reused = session->rewindable(static_cast<int64_t>(s), common);
    auto filled = static_cast<int64_t>(slots[s].cached.size() + slots[s].decoded.size());
    // The last token of a prompt that is given again is computed for its logits.
    bool continues = common + 1 >= slots[s].promptTokens || reused >= filled - reused;
    int64_t continued = continues ? reused : 0;
    if (!match || continued > longest ||
        (continued == longest && slots[s].lastUsed < slots[match->slot].lastUsed)) {
      match = {s, common, reused};
      longest = continued;
    }
  }
  return match;
}

/// The number of positions of a text that another request's prompt may reuse: those with the values
/// that prefill would compute. If the arithmetic depends on the role of a row, this excludes the
/// positions of an answer.
int64_t Scheduler::reusablePositions(size_t s, const Task &task) const {
  int64_t filled = session->length(static_cast<int64_t>(s));
  return loaded.manifest().dependsOnRole ? std::min(filled, task.result.promptTokens) : filled;
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

} // namespace mica::rt
