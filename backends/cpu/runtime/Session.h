// Sequences in progress: their caches, and the call of the model's forward function.
//
// mica_forward takes an array of pointers to memref descriptors {allocated, aligned, offset,
// sizes[R], strides[R]}, all words of 8 bytes, row-major, in this order (T rows, O outputs, V
// vocabulary):
//   tokens i32[T], sequences i32[T], positions i32[T], outputs i32[O], caches as in the
//   manifest..., weights u8[bytes], scratch u8[bytes], logits f32[O, V]
// Row t holds token tokens[t] of sequence sequences[t] at position positions[t]. Rows of one
// sequence are contiguous and in increasing position. Row outputs[o] is the one whose logits are
// logits[o].
#pragma once

#include "backends/cpu/runtime/Memory.h"
#include "backends/cpu/runtime/Model.h"

namespace mica::rt {

class Session {
public:
  /// Reserves caches for `sequences` sequences of the model's max_seq positions. `model` must
  /// outlive the session.
  static Result<std::unique_ptr<Session>> create(const Model &model, int64_t sequences);

  int64_t sequences() const { return static_cast<int64_t>(lengths.size()); }
  /// Positions filled so far, queued rows included.
  int64_t length(int64_t sequence) const { return lengths[sequence]; }
  /// Positions that are still free.
  int64_t room(int64_t sequence) const { return model.manifest().maxSeq - lengths[sequence]; }
  /// Forgets everything behind the first `length` positions of a sequence.
  void truncate(int64_t sequence, int64_t length) { lengths[sequence] = length; }

  /// Queues the next row of a sequence. All rows of one sequence must be queued one after the
  /// other. Errors: a token outside the vocabulary, a full context.
  Status push(int64_t sequence, int32_t token, bool wantLogits);
  int64_t queued() const { return static_cast<int64_t>(tokens.size()); }
  /// Runs the queued rows. The logits, f32[outputs, vocab] in the order of the rows that wanted
  /// them, are valid until the next run.
  Result<std::span<const float>> run();

private:
  explicit Session(const Model &model) : model(model) {}
  Status reserveCaches(int64_t sequences);
  Status growBuffers();

  const Model &model;
  std::vector<int64_t> lengths;
  std::vector<int32_t> tokens, rowSequences, positions, outputs;
  std::vector<Memory> caches;
  std::vector<std::vector<int64_t>> cacheShapes; ///< With run-time sizes filled in.
  Memory scratch, logits;
};

} // namespace mica::rt
