// Sequences in progress: their caches, and the call of the model's forward function.
//
// mica_forward takes an array of pointers to memref descriptors, the role of all rows
// (abi/RowRole.h), and the functions of the runtime (abi/RuntimeTable.h). The descriptors are
// {allocated, aligned, offset, sizes[R], strides[R]}, all words of 8 bytes, row-major. The manifest
// lists them in order (T rows, O outputs, V vocabulary; see ir/Entry/EntryRoles.h):
//   tokens i32[T], sequences i32[T], positions i32[T], logit_indices i32[O], lengths i32[T], each
//   cache as in the manifest, hidden f32[T, C], weights u8[bytes], scratch u8[bytes], logits
//   f32[O, V]
// Row t holds token tokens[t] of sequence sequences[t] at position positions[t]; lengths[t] is the
// total length of that sequence, on which its rope frequencies depend. Rows of one sequence are
// contiguous and in increasing position. logits[o] are the logits of row logit_indices[o].
//
// If the program has a multi-token prediction head, the model also writes the hidden states of its
// rows, and a call with RowRole::Draft runs the head instead: row t has token tokens[t], the hidden
// state hidden[t] of the position before that token, and that position in the head's own cache; the
// head replaces the hidden states by its own. It has the model's rows in that cache before it
// drafts. A head's cache only determines which tokens are drafted, never which are generated: where
// the session has not computed it (the rows of a request without drafts, and the last one before a
// rewind, which follows another token), it is whatever it was.
//
// If the arithmetic of a row depends on its role, the session calls the model once for each role
// that is queued, so that a row's results do not depend on the other queued rows.
//
// A cache with a window is a ring buffer of R blocks: position p is stored in block p / 64 mod R
// until a later position overwrites it. A state of fixed size is a ring buffer as well, with the
// number of slots given in the manifest: position p is in slot p mod slots. A sequence that is
// rewound further than the ring buffers of states allow is recomputed from its nearest checkpoint
// (StateCheckpoints.h), else from its first position.
//
// If frequencies depend on the length, all rows of a sequence must be on the same side of each
// threshold. When a sequence crosses one, in either direction, the session recomputes its tokens
// once with the frequencies of the new length, each in its original role. Between thresholds rows
// are not recomputed.
//
// If several ranks run the program, rank 0 has the sessions that a command uses and tells the
// others about each call of the model (RankMessage.h); sessions of one model must then not be used
// at the same time, nor while a call of one of them can be interrupted.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_SESSION_H
#define MICA_BACKENDS_RUNTIME_ENGINE_SESSION_H

#include "backends/runtime/engine/Model.h"
#include "backends/runtime/engine/MtpRows.h"
#include "backends/runtime/engine/RankMessage.h"
#include "backends/runtime/engine/StateCheckpoints.h"
#include "backends/runtime/support/Memory.h"

#include <array>
#include <functional>
#include <span>

namespace mica::rt {

/// Returns an error if the token is not in the vocabulary.
Status checkToken(const Manifest &manifest, int32_t token);

class Session {
public:
  /// Reserves caches for `sequences` sequences of the model's max_seq positions. `model` must
  /// outlive the session. `chunk` is the maximum number of rows of a prompt per call of the model.
  /// `checkpointBytes`: the budget of checkpoints, see checkpointBudget.
  static Result<std::unique_ptr<Session>> create(const Model &model, int64_t sequences,
                                                 int64_t chunk, uint64_t checkpointBytes = 0);

  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /// The work of the ranks but 0 of a program: has the sessions of rank 0 and runs their calls
  /// until the model of rank 0 is destroyed.
  static Status follow(const Model &model);

  int64_t sequences() const { return static_cast<int64_t>(lengths.size()); }
  /// The number of positions so far, including queued rows.
  int64_t length(int64_t sequence) const { return lengths[sequence]; }
  /// The number of free positions.
  int64_t room(int64_t sequence) const { return model.manifest().maxSeq - lengths[sequence]; }
  /// Keeps the first `length` positions of a sequence if everything that the next row reads is
  /// still stored; otherwise those of the nearest checkpoint of the states, else none. Returns how
  /// many positions remain: those after them must be recomputed. The last Manifest::rewindPositions
  /// computed positions of caches can always be rewound, and those of a state as long as the
  /// positions that it needs are in its ring buffer: see docs/state.md.
  int64_t rewind(int64_t sequence, int64_t length);
  /// How many positions rewind would keep.
  int64_t rewindable(int64_t sequence, int64_t length) const;
  /// Whether everything is stored that the row after the first `length` positions of a sequence
  /// reads, and can be copied to a text of `total` positions: not if several ranks run the program,
  /// or if that is in another regime.
  bool canCopy(int64_t from, int64_t length, int64_t total) const;
  /// Replaces all positions of `to` by the first `length` of `from`, which are computed and can be
  /// copied. `to` has no queued rows.
  void copy(int64_t from, int64_t to, int64_t length);
  /// How many of the first `length` positions of a sequence have the frequencies that they would
  /// have in a text of `total` positions: of a theta that grows with the length, only those that
  /// were computed with the same length. In another regime they are recomputed anyway.
  int64_t reusableFor(int64_t total, int64_t sequence, int64_t length) const;
  /// Whether prompts of texts of two total lengths have the same frequencies.
  bool haveSameFrequencies(int64_t total, int64_t other) const;
  /// Whether rewinding may continue at checkpoints. If so, they are taken at regular distances.
  bool keepsCheckpoints() const { return checkpoints->isEnabled(); }
  /// Takes a checkpoint near the end of the computed positions, if the states allow one.
  void takeCheckpoint(int64_t sequence);
  /// The bytes of all checkpoints; may be called from any thread.
  uint64_t checkpointBytes() const { return checkpoints->bytes(); }
  /// Sets the length of the text: rows of a sequence up to position `total` are computed as parts
  /// of a text of that length. By default, a row is computed as the last one of its text.
  void setTotalLength(int64_t sequence, int64_t total);
  /// Whether the rows of a sequence are kept for drafts, from its next one.
  void setDrafts(int64_t sequence, bool wanted);
  /// What a multi-token prediction head drafts: at most `limit` tokens after `next`, the token that
  /// follows the sequence, which has no queued rows.
  struct DraftRequest {
    int64_t sequence;
    int32_t next;
    int64_t limit;
  };
  /// The most likely tokens after each request, one call of the head for each further token of all
  /// of them. Empty for a sequence whose last row is not known.
  Result<std::vector<Tokens>> draft(std::span<const DraftRequest> requests);
  /// The number of further rows that can be queued together without crossing a threshold.
  int64_t positionsUntilThreshold(int64_t sequence) const;
  /// The number of recomputed tokens, and the time spent on them.
  int64_t recomputedTokens() const { return numRecomputed; }
  double recomputeSeconds() const { return secondsRecomputing; }
  /// The time spent on copies.
  double copySeconds() const { return secondsCopying; }

  /// Queues the next row of a sequence. All rows of one sequence must be queued consecutively, at
  /// most as many as were passed to blocksOfCache; all rows that are queued together are computed
  /// in the regime of the last one. Errors: a token outside the vocabulary, a full context.
  Status add(int64_t sequence, int32_t token, RowRole role, bool wantLogits);
  int64_t queued() const { return queue.count(); }
  /// Discards the queued rows.
  void discardQueued();
  /// Whether buffers for one more row with logits would exceed kMaxStepBytes, so that a caller that
  /// queues rows of many sequences should run the queued rows first. A few rows with logits are
  /// always accepted.
  bool atMemoryLimit() const;
  /// Whether a caller that queues rows of prompts should run the queued rows first.
  bool isFull() const { return queued() >= maxRows || atMemoryLimit(); }
  /// Whether to continue recomputing a sequence's tokens.
  using ShouldContinue = std::function<bool(int64_t sequence)>;
  /// Recomputes the rows before the queued ones if they are in another regime; `shouldContinue` is
  /// called before each call of the model. If it returns false, so does this function, and the
  /// queued rows and the positions of that sequence that have not been recomputed are discarded.
  Result<bool> prepare(const ShouldContinue &shouldContinue);
  /// Called before each kernel of a call of the model. It may queue and run rows of sequences that
  /// have none in the call, draft after and rewind these sequences, and take checkpoints of them.
  /// It must not throw, and its own calls of decode cannot be interrupted.
  using BeforeKernels = std::function<void()>;
  /// Whether decode can call a function before kernels: not if several ranks run the program, or
  /// while a profile is recorded.
  bool canInterrupt() const { return !model.isLeader() && !model.runtime().profile(); }
  /// Runs the queued rows, prepared or not. The logits, f32[outputs, vocab] in the order of the
  /// rows that requested them, are valid until the next run; a run within `beforeKernels` only
  /// invalidates those of the one before it there.
  Result<std::span<const float>> decode(const BeforeKernels &beforeKernels = {});

private:
  /// The history of a sequence, for models whose rope frequencies depend on the sequence length.
  struct SequenceHistory {
    std::vector<int32_t> ids;   ///< of all its positions
    std::vector<RowRole> roles; ///< of all its positions, if the model depends on roles
    int64_t totalLength = 0;    ///< rows before it are computed with this length
    size_t regime = 0; ///< number of thresholds exceeded by the length for which the positions were
                       ///< computed
    int64_t lengthOfFirst = 0; ///< the length that the first position was computed with
    int64_t uniform = 0;       ///< the number of positions from the first on with that length

    void add(int64_t position, int64_t length);
  };
  /// Rows to compute in one or several calls.
  struct Rows {
    std::vector<int32_t> tokens, sequences, positions, outputs, lengths;
    std::vector<RowRole> roles;
    static constexpr std::vector<int32_t> Rows::*vectors[] = {
        &Rows::tokens, &Rows::sequences, &Rows::positions, &Rows::outputs, &Rows::lengths};
    int64_t count() const { return static_cast<int64_t>(tokens.size()); }
    void clear();
  };

  Session(const Model &model, int64_t chunk) : model(model), maxRows(chunk) {}
  /// Identifies the session while it exists.
  int64_t number() const { return reinterpret_cast<int64_t>(this); }
  Status reserveCaches(int64_t sequences);
  void forget(int64_t sequence, int64_t length);
  void startOver(int64_t sequence);
  bool isStored(const CacheSpec &cache, int64_t sequence, int64_t length) const;
  bool areCachesStored(int64_t sequence, int64_t length) const;
  bool areStatesStored(int64_t sequence, int64_t length) const;
  void takeCheckpoint(int64_t sequence, int64_t end, int64_t spacing);
  void finishRows(const Rows &rows, RowRole role);
  Status growScratch(const Rows &rows);
  Status growLogits(size_t outputs);
  Status growHidden(size_t rows);
  std::span<const float> hiddenOf(size_t row) const;
  size_t ropeRegime(int64_t length) const;
  int64_t lengthAt(int64_t sequence, int64_t position) const;
  Result<int64_t> recompute(int64_t sequence, int64_t end, int64_t length,
                            const ShouldContinue &shouldContinue);
  RowRole roleAt(int64_t sequence, int64_t position) const;
  Rows takeRole(const Rows &queued, RowRole role, std::vector<bool> &done,
                std::vector<size_t> &order) const;
  Status callByRole(const Rows &queued);
  Status call(const Rows &rows, RowRole role, size_t firstLogits,
              std::span<const float> states = {});
  void takeHeadRows(int64_t sequence, size_t count, int32_t next, Rows &rows,
                    std::vector<float> &states);
  Status computeHeadRows(const Rows &rows);
  Status runHead(int64_t sequence, size_t count, int32_t next);
  Status announce(const Rows &rows, RowRole role, size_t firstLogits);
  Status repeat(const RankMessage &message);

  const Model &model;
  bool isAnnounced = false; ///< whether the other ranks have this session as well
  int64_t maxRows;          ///< per call, also while recomputing
  std::vector<int64_t> lengths;
  /// How far the memory of a sequence has been computed. Rewinding within ring buffers changes
  /// nothing here, because the discarded positions have overwritten earlier ones.
  struct Computed {
    int64_t caches = 0;       ///< the position after the last one in caches
    int64_t states = 0;       ///< the same for states of fixed size
    int64_t firstInState = 0; ///< the length at which the states were last restored
  };
  std::vector<Computed> computed;         ///< per sequence
  std::vector<SequenceHistory> histories; ///< empty if frequencies do not depend on the length
  Rows queue;
  int64_t numRecomputed = 0;
  double secondsRecomputing = 0, secondsCopying = 0;
  std::vector<Memory> caches;
  std::vector<std::vector<int64_t>> cacheShapes; ///< with run-time sizes
  std::unique_ptr<StateCheckpoints> checkpoints;
  /// The memory of a call of the model: calls that interrupt another one have their own.
  struct Buffers {
    Memory scratch, logits, hidden;
  };
  std::array<Buffers, 2> buffers;
  size_t depth = 0;
  Buffers &buffersOfCall() { return buffers[depth]; }
  const Buffers &buffersOfCall() const { return buffers[depth]; }
  /// Per sequence, if the program has a multi-token prediction head.
  struct Head {
    bool isWanted = false;
    MtpRows rows;
  };
  std::vector<Head> heads;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_SESSION_H
