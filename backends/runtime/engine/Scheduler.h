// Generates the texts of many requests at once, on one session. A request waits for a slot (a
// sequence of the session), its prompt is computed in separate calls or together with others,
// then each step computes the newest token of every text in progress and what has been drafted
// after it.
//
// If the arithmetic of a row depends on the role of its position, prefill or decode (RowRole.h),
// the two never share a call of the model, but a call for prompts may be interrupted to decode
// (PromptBudget.h). The results of a row do not depend on the other rows of its call, so a text
// does not depend on other requests.
//
// For the same reason a text does not depend on the state of the cache: if the arithmetic depends
// on the role, a prompt reuses only positions that were computed in prefill. The answer to an
// earlier turn was decoded, and is recomputed as part of a prompt: by recomputeAnswers while there
// is nothing else to do, else in the next turn.
//
// The prefix of a prompt that another slot has computed, for another completion of the same prompt
// or as the same system prompt, is copied from there. If that slot is still computing it, the
// prompt waits.
//
// submit and cancel may be called from any thread and from listeners, everything else from one
// thread at a time. Listeners are called only during step, on its thread except `sampled`.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_SCHEDULER_H
#define MICA_BACKENDS_RUNTIME_ENGINE_SCHEDULER_H

#include "backends/runtime/engine/FairQueue.h"
#include "backends/runtime/engine/PromptBudget.h"
#include "backends/runtime/engine/PromptLookup.h"
#include "backends/runtime/engine/Request.h"
#include "backends/runtime/engine/Session.h"

#include <mutex>
#include <optional>
#include <unordered_set>

namespace mica::rt {

class Scheduler {
public:
  struct Options {
    int64_t slots = 1;
    /// The row budget of a step for prompts, and the maximum number of rows of a prompt in one call
    /// of the model, see prefillChunkSize. Without promptsFirst, prompts share it round-robin.
    int64_t promptRows = 512;
    /// Allows one call to compute rows of several prompts, which needs fewer calls.
    bool promptsShareCalls = false;
    /// Computes rows of prompts in the call that decodes, if the arithmetic does not depend on the
    /// role: the weights are then read once for both.
    bool promptsJoinDecode = false;
    /// Decodes only if there is no prompt to compute: a step is one call for prompts, or decodes.
    /// Otherwise each step decodes first and then computes prompts within the row budget. If a text
    /// is awaited (Request::limitGaps), the calls for prompts are interrupted to decode.
    bool promptsFirst = false;
    /// The budget of checkpoints, see checkpointBudget. With it, calls of the model also end where
    /// a later prompt is likely to need one: see Task::setCuts.
    uint64_t checkpointBytes = 0;
  };
  using RequestId = uint64_t;

  /// What has been computed so far.
  struct Totals {
    int64_t promptTokens = 0; ///< Positions.
    int64_t joinedTokens = 0; ///< Of these, positions computed in a call that decodes.
    int64_t decodeTokens = 0; ///< Positions; of drafts, accepted ones only.
    int64_t promptCalls = 0, decodeCalls = 0; ///< Calls of the model.
    int64_t interruptions = 0;                ///< Decode calls within a call for prompts.
    int64_t drafted = 0, accepted = 0;        ///< Drafted and accepted tokens.
    int64_t recomputedTokens = 0;             ///< See Session::recomputedTokens.
    int64_t recomputedAnswerTokens = 0;       ///< See recomputeAnswers.
    int64_t copiedTokens = 0;                 ///< Positions of prompts copied from another slot.
    double promptSeconds = 0, decodeSeconds = 0;
    double recomputeSeconds = 0; ///< Not included in the others.

    Totals operator-(const Totals &before) const;
  };

  /// Reserves the slots' caches. `model` must outlive the scheduler.
  static Result<std::unique_ptr<Scheduler>> create(const Model &model, const Options &options);
  /// Listeners of unfinished requests are not notified.
  ~Scheduler();

  /// Queues a request. `listener` must outlive it. Slots are given to waiting requests round-robin,
  /// in the order of submission; requests with the same `leader`, an earlier request, and the
  /// leader itself count as one. Errors are those of checkRequest.
  Result<RequestId> submit(Request request, RequestListener &listener,
                           std::optional<RequestId> leader = {});
  /// The same for a request that has passed checkRequest. While it waits, it takes no memory in
  /// proportion to its prompt or its settings.
  RequestId submit(SharedRequest request, RequestListener &listener,
                   std::optional<RequestId> leader = {});
  /// Ends a request at the beginning of the next step, at the next interruption of a call that has
  /// no rows of it, or before the next call that recomputes its positions. Does nothing if the
  /// request is already finished.
  void cancel(RequestId id);
  /// Advances all requests. Returns whether any is unfinished afterwards.
  bool step();
  /// Recomputes some positions of an answer whose request has ended as those of a prompt, so that
  /// the next turn of the conversation can reuse them. Takes about a quarter of a second, for which
  /// requests would have to wait. Returns whether positions of answers remain; never if the
  /// arithmetic does not depend on the role. Answers before which more than 512 positions would
  /// have to be recomputed as well are left out.
  bool recomputeAnswers();

  const Model &model() const { return loaded; }
  Totals totals() const;
  /// Positions that a slot has cached.
  int64_t cachedTokens(int64_t slot) const { return session->length(slot); }
  /// The bytes of all checkpoints; may be called from any thread.
  uint64_t checkpointBytes() const { return session->checkpointBytes(); }

private:
  /// A request from its submission to its end.
  struct Task;
  struct Slot {
    std::unique_ptr<Task> task; ///< Null: the slot is free.
    // If the slot is free:
    Tokens cached;            ///< The tokens of its reusable positions.
    Tokens decoded;           ///< Those of the decoded positions after them: see recomputeAnswers.
    int64_t promptTokens = 0; ///< The length of its last prompt.
    uint64_t lastUsed = 0;    ///< Larger is later; 0: never.

    bool isBusy = false; ///< A call of the model in progress has rows of it.
  };
  /// A row that has been queued in the session.
  struct Row {
    size_t slot;
    int32_t token;
    RowRole role;
    bool logits;             ///< Its logits are needed.
    bool sample;             ///< The next token is sampled from its logits.
    bool ends;               ///< The last row of a prompt after which nothing is generated.
    int64_t numDrafts = 0;   ///< The number of drafted rows that follow it.
    bool checkpoint = false; ///< A checkpoint is taken after it.
  };

  Scheduler(const Model &model, const Options &options, std::unique_ptr<Session> session);

  void receive();
  bool isWanted(const Task &task);
  struct Match;
  /// The beginning of a prompt, where a slot has it.
  struct Prefix {
    size_t slot;
    int64_t positions;
  };
  int64_t computedPrompt(size_t slot) const;
  int64_t commonPrefix(const Task &task, size_t slot) const;
  int64_t awaitedPositions(const Task &task, size_t slot) const;
  void findSource(size_t slot);
  void replaceSource(size_t slot, RequestId id, int64_t computed);
  bool waitsForCopy(size_t slot) const;
  std::optional<Prefix> prefixToCopy(size_t slot) const;
  void copyPrefix(size_t slot, const Prefix &prefix);
  std::optional<Match> freeSlot(const Task &task) const;
  bool admitNext();
  void admit(const Match &match, std::unique_ptr<Task> task);
  std::optional<size_t> promptSlot();
  double uncountedSeconds() const;
  bool computePrompts();
  bool interruptsPrompts() const;
  size_t promptCount() const;
  int64_t promptRowsOfStep() const;
  int64_t runInterruptible(size_t numPrompts);
  void queuePrompts(int64_t maxRows);
  bool queuePrompt(size_t slot, int64_t maxRows);
  void decode();
  int64_t runDecode();
  bool joinsPrompts() const;
  Status draft(int64_t maxDrafts);
  bool queueNewest(size_t slot);
  bool queue(const Row &row);
  bool rewind(size_t slot, int64_t length);
  bool prepare();
  int64_t run();
  int64_t runPrepared(const Session::BeforeKernels &beforeKernels);
  void notifyListeners(const std::vector<Row> &computed, std::span<const float> logits);
  std::vector<std::optional<Result<int32_t>>>
  sampleFirst(const std::vector<Row> &computed, const std::vector<std::span<const float>> &logits);
  bool choose(const Row &row, std::span<const float> logits,
              std::optional<Result<int32_t>> sampled);
  bool accept(size_t slot, int32_t token, std::span<const float> logits, int64_t numDrafts);
  std::optional<Finish> finishAfter(const Task &task, int32_t token, int64_t room) const;
  void acceptDraft(Task &task, int64_t right);
  int64_t reusablePositions(size_t slot, const Task &task) const;
  std::optional<size_t> slotToRecompute() const;
  Status recomputeAsPrompt(size_t slot, int64_t count);
  void end(size_t slot, Finish finish);
  void fail(size_t slot, const Error &error);
  void failQueued(const Error &error);

  const Model &loaded;
  Options options;
  std::unique_ptr<Session> session;
  std::vector<Slot> slots;
  FairQueue<RequestId, std::unique_ptr<Task>> waiting;
  std::vector<Row> rows; ///< The rows queued in the session, in order.
  Totals counted;
  uint64_t admissions = 0; ///< Requests that have got a slot.
  uint64_t nextOrder = 0;  ///< The round-robin order of prompts; see Task::order.
  uint64_t uses = 0;       ///< Requests that have ended in a slot.
  PromptBudget budget;
  PromptBudget answerBudget; ///< Of recomputeAnswers.
  size_t numDecoding = 0;    ///< The number of requests that the current step decodes for.
  bool limitsGaps = false;   ///< Whether one of these has Request::limitGaps.
  bool hasCopied = false;    ///< Whether the current step has copied a prefix.
  /// Prompts have joined the call that decodes, or are left out to measure its time.
  bool promptsAreDone = false;

  /// Requests and cancellations from other threads.
  struct Inbox {
    std::mutex mutex;
    std::vector<std::unique_ptr<Task>> submitted;
    std::unordered_set<RequestId> canceled;
    RequestId next = 0;
  } inbox;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_SCHEDULER_H
